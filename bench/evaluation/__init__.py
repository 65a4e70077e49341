"""What bench/run and bench/compare are made of.

scratch         directories, mounts and processes that must not outlive a run
configurations  what a workload runs on: native, Tracefs in all its forms
peers           other tracers and pass-through file systems
workloads       what is run and timed
experiments     which workload on which configurations, the paper's figures for
                it, and the targets
offline         costs that are not a workload on a mount: micro benchmarks,
                instructions, requests, the anonymiser
runner          rounds in random order, until the figures are good enough
samples         raw samples on disk; an interrupted run goes on from there
statistics      means, confidence intervals, paired ratios
report, plots   tables, the page, the figures
comparison      two results side by side
environment     the machine and the programs
"""
