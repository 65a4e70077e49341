"""An authority and certificates for tests over TLS."""

import os
import subprocess


def make_certificates(folder, names, hosts):
    """In `folder`: ca.pem and ca.key; NAME.pem and NAME.key (0600) for each of
    `names`, for use at `hosts`, spelled as openssl wants them:
    "DNS:localhost,IP:127.0.0.1"."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder,
                       capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out",
            "ca.pem", "-days", "2", "-subj", "/CN=tracefs test authority")
    with open(os.path.join(folder, "hosts"), "w", encoding="ascii") as out:
        out.write(f"subjectAltName={hosts}\n")
    for name in names:
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
                "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "hosts",
                "-out", f"{name}.pem")
        os.chmod(os.path.join(folder, f"{name}.key"), 0o600)
