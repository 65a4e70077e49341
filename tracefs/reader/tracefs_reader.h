/* libtracefs-reader: reads traces made by Tracefs.
 *
 * What is promised about this interface, and what it is for, is in
 * docs/reader.md. In short:
 *
 *   - Names, numbers and structures here are only ever added to, within one
 *     version of the shared library. No call throws, ends the process, prints,
 *     or changes what belongs to the process (signals, locale, environment).
 *   - Nothing is global. Two readers may be used by two threads at once; one
 *     reader is used by one thread at a time. tracefs_reader_cancel and
 *     tracefs_reader_progress may be called by any thread at any time.
 *     Callbacks run on the thread that called, and do not call their reader.
 *   - Texts are bytes with a size, and end with no NUL unless they are said to.
 *     Times are nanoseconds: begin times since 1970, durations by themselves.
 *   - What a reader hands out belongs to it and holds until the next call with
 *     that reader, unless something else is said.
 *   - Traces may be damaged, cut or hostile: memory stays bounded, what is
 *     whole is delivered, and the rest is reported and counted by kind.
 *
 *   tracefs_options *options = tracefs_options_new();
 *   tracefs_options_add_path(options, "trace.log");
 *   tracefs_options_set_filter(options, "op = write");
 *   tracefs_reader *reader = tracefs_reader_open(options);
 *   const tracefs_event *event;
 *   while (tracefs_reader_next(reader, &event) == TRACEFS_ITEM) { ... }
 *   if (tracefs_reader_status(reader) < 0)
 *     fputs(tracefs_reader_message(reader), stderr);
 *   tracefs_reader_close(reader);
 *   tracefs_options_free(options);
 */
#ifndef TRACEFS_READER_H
#define TRACEFS_READER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TRACEFS_READER_BUILD)
#define TRACEFS_READER_API __attribute__((visibility("default")))
#else
#define TRACEFS_READER_API
#endif

typedef struct tracefs_options tracefs_options;
typedef struct tracefs_reader tracefs_reader;
typedef struct tracefs_event tracefs_event;
typedef struct tracefs_report tracefs_report;

/* What a call came to. Errors are negative, and are the exit statuses of the
 * commands with a minus. */
enum {
  TRACEFS_END = 0,       /* there will be no more */
  TRACEFS_ITEM = 1,      /* there is one; of calls without items: done */
  TRACEFS_WAIT = 2,      /* a growing input has no more yet: try again later */
  TRACEFS_BAD_DATA = -1, /* not a trace, or what `strict` forbids */
  TRACEFS_BAD_USE = -2,  /* an option, a filter, a name or an order of calls */
  TRACEFS_SYSTEM = -3,   /* the system refused: files, keys, memory */
  TRACEFS_CANCELLED = -4 /* tracefs_reader_cancel was called */
};

/* What a reader finds wrong, lost or unknown. */
enum {
  TRACEFS_UNKNOWN_MESSAGE = 0,  /* of a later version: skipped */
  TRACEFS_UNKNOWN_ARGUMENT = 1, /* of a later version: the event has it as
                                   an extra argument */
  TRACEFS_BAD_ARGUMENT = 2,     /* a length that lies: the event comes with
                                   what stood before */
  TRACEFS_BAD_MESSAGE = 3,      /* the same of a message: the rest of its
                                   block is skipped */
  TRACEFS_BAD_DEFINITION = 4,   /* a path or process defined out of order */
  TRACEFS_DAMAGED_BLOCK = 5,    /* bytes that are not a block; a block whose
                                   output chain cannot be undone */
  TRACEFS_MISSING_BLOCK = 6,    /* numbers that were left out; block 0 */
  TRACEFS_CUT_FILE = 7,         /* the end within a block, or without FINAL */
  TRACEFS_DUPLICATE_BLOCK = 8,  /* seen before: skipped */
  TRACEFS_UNKNOWN_BLOCK = 9,    /* a kind of a later version: skipped */
  TRACEFS_LOSS = 10,            /* operations that the tracer did not keep */
  TRACEFS_UNORDERED = 11,       /* order was given up to bound memory */
  TRACEFS_STILL_WRITTEN = 12,   /* the end, as somebody still writes */
  TRACEFS_NOTE = 13,            /* nothing wrong: parts, snapshots, changes */
  TRACEFS_REPORT_KINDS = 14
};
#define TRACEFS_KIND_BIT(kind) (UINT64_C(1) << (kind))

/* --- Options --------------------------------------------------------------
 *
 * Filled once, then used for any number of readers. Calls return TRACEFS_ITEM,
 * or an error whose text is tracefs_options_message. */

/* Null without memory. */
TRACEFS_READER_API tracefs_options* tracefs_options_new(void);
TRACEFS_READER_API void tracefs_options_free(tracefs_options* options);
/* Why the last call failed; ends with NUL. */
TRACEFS_READER_API const char* tracefs_options_message(
    const tracefs_options* options);

/* A file, a pipe, "-" for standard input, or a folder of files. Several inputs
 * are merged by time; the parts of a rotated trace are one trace. */
TRACEFS_READER_API int tracefs_options_add_path(tracefs_options* options,
                                                const char* path);
/* A descriptor, of which each reader makes a duplicate when it opens. `name` is
 * for messages. */
TRACEFS_READER_API int tracefs_options_add_fd(tracefs_options* options, int fd,
                                              const char* name);
/* Memory that outlives all readers. */
TRACEFS_READER_API int tracefs_options_add_memory(tracefs_options* options,
                                                  const void* bytes,
                                                  size_t size,
                                                  const char* name);
/* Keys: a path, "file:PATH", "env:NAME" or "keyring:NAME". Read at once. */
TRACEFS_READER_API int tracefs_options_add_key(tracefs_options* options,
                                               const char* source);
/* Only events that match, in the language of capture filters. Operations that
 * no event can match are not even decoded. */
TRACEFS_READER_API int tracefs_options_set_filter(tracefs_options* options,
                                                  const char* text);
/* Only events that began at `from` or later, and before `to`. Looked for, not
 * read up to, in files. Messages: those of the first block of each trace, and
 * of all blocks that have such an event or no event at all. */
TRACEFS_READER_API int tracefs_options_set_range(tracefs_options* options,
                                                 uint64_t from, uint64_t to);

enum {
  TRACEFS_FOLLOW = 1,       /* 1: inputs may grow; TRACEFS_WAIT at their end */
  TRACEFS_MEMORY_BYTES = 2, /* held for the order of events; default 256 MiB */
  TRACEFS_THREADS = 3,      /* that decode columns; 0, the default: as many as
                               there are processors. Only the caller's own for 1
                               by time, with TRACEFS_FOLLOW, more than 8 traces,
                               or a filter that asks for ancestors */
  TRACEFS_FILE_ORDER = 4,   /* 1: columns block by block, as they stand in the
                               file, instead of by time, which is faster; not
                               with TRACEFS_FOLLOW or a filter that asks for
                               ancestors */
  TRACEFS_BATCH_ROWS = 5,   /* of columns by time: at most; default 65536 */
  TRACEFS_NO_OPERATIONS = 6 /* 1: tracefs_reader_next_message passes over those
                               of operations: processes, losses and totals */
};
TRACEFS_READER_API int tracefs_options_set(tracefs_options* options, int what,
                                           uint64_t value);

/* Kinds, as a sum of TRACEFS_KIND_BIT. The first finding of a strict kind ends
 * reading with TRACEFS_BAD_DATA and names the place. To ask for lenience, where
 * somebody must be told, needs a report function: else opening fails. Kinds
 * that are in neither are counted and, if there is a function, reported. */
TRACEFS_READER_API int tracefs_options_set_strict(tracefs_options* options,
                                                  uint64_t kinds);
TRACEFS_READER_API int tracefs_options_set_lenient(tracefs_options* options,
                                                   uint64_t kinds);

/* Gets each finding as it is found. */
typedef void (*tracefs_report_function)(void* context,
                                        const tracefs_report* report);
TRACEFS_READER_API int tracefs_options_on_report(tracefs_options* options,
                                                 tracefs_report_function report,
                                                 void* context);
/* Gets each text of an event before it is handed out (in columns: each
 * different text of a batch), and may put another one in its place: it then
 * sets both and returns 1. The new text holds until the next call. */
typedef int (*tracefs_text_function)(void* context, uint32_t field,
                                     const char* text, size_t size,
                                     const char** new_text, size_t* new_size);
TRACEFS_READER_API int tracefs_options_on_text(tracefs_options* options,
                                               tracefs_text_function text,
                                               void* context);

/* Valid during the call of the function that gets the report. */
TRACEFS_READER_API int tracefs_report_kind(const tracefs_report* report);
/* Which trace, and where in it: bytes of the input. */
TRACEFS_READER_API size_t tracefs_report_trace(const tracefs_report* report);
TRACEFS_READER_API uint64_t tracefs_report_offset(const tracefs_report* report);
/* The number of the block or id that it is about; how many. */
TRACEFS_READER_API uint64_t tracefs_report_number(const tracefs_report* report);
TRACEFS_READER_API uint64_t tracefs_report_count(const tracefs_report* report);
/* One line for people, made when it is asked for; ends with NUL. */
TRACEFS_READER_API const char* tracefs_report_text(
    const tracefs_report* report);

/* --- Readers -------------------------------------------------------------- */

/* Opens all inputs. Null without memory; else a reader, whose status may be an
 * error. The options may be freed. */
TRACEFS_READER_API tracefs_reader* tracefs_reader_open(
    const tracefs_options* options);
TRACEFS_READER_API void tracefs_reader_close(tracefs_reader* reader);

/* TRACEFS_ITEM while all is well, TRACEFS_END after the end, else the error
 * that ended reading. Its text names the input and the next step; ends with
 * NUL. */
TRACEFS_READER_API int tracefs_reader_status(const tracefs_reader* reader);
TRACEFS_READER_API const char* tracefs_reader_message(
    const tracefs_reader* reader);

/* How often a kind was found so far. TRACEFS_LOSS: operations; UNKNOWN_…,
 * BAD_…: messages or arguments; DAMAGED_BLOCK: ranges and blocks;
 * MISSING_BLOCK: blocks. */
TRACEFS_READER_API uint64_t tracefs_reader_count(const tracefs_reader* reader,
                                                 int kind);
/* 1 if all was read and nothing that was recorded is missing, else 0. Events
 * that the filter or the range left out are not missing. */
TRACEFS_READER_API int tracefs_reader_complete(const tracefs_reader* reader);

/* From any thread: the call that runs, and all later ones, come to
 * TRACEFS_CANCELLED. */
TRACEFS_READER_API void tracefs_reader_cancel(tracefs_reader* reader);
/* From any thread: bytes of the inputs read so far, and in all; 0: not known.
 */
TRACEFS_READER_API void tracefs_reader_progress(const tracefs_reader* reader,
                                                uint64_t* done,
                                                uint64_t* total);
/* The ends of growing inputs, as they are now, are the ends. */
TRACEFS_READER_API void tracefs_reader_stop(tracefs_reader* reader);

/* What traces there are and what they say of themselves. Reads the first block
 * of each; before events, or after. */
TRACEFS_READER_API size_t tracefs_reader_traces(const tracefs_reader* reader);
/* Ends with NUL. Null if there is no such trace. */
TRACEFS_READER_API const char* tracefs_reader_trace_name(
    const tracefs_reader* reader, size_t trace);
/* TRACEFS_END if there is no such property, or no property of that number. */
TRACEFS_READER_API int tracefs_reader_property(tracefs_reader* reader,
                                               size_t trace, const char* key,
                                               const char** value,
                                               size_t* size);
TRACEFS_READER_API int tracefs_reader_property_at(
    tracefs_reader* reader, size_t trace, size_t number, const char** key,
    size_t* key_size, const char** value, size_t* size);
/* The versions that the trace was written with and asks for. */
TRACEFS_READER_API int tracefs_reader_format(tracefs_reader* reader,
                                             size_t trace, unsigned* version,
                                             unsigned* min_reader_version);

/* When the first and the last event began, without reading what lies between:
 * TRACEFS_END where that cannot be found out (pipes). */
TRACEFS_READER_API int tracefs_reader_time_span(tracefs_reader* reader,
                                                uint64_t* first,
                                                uint64_t* last);
/* Before the first event: goes to the events that began at `time` or later, or
 * to the block with that sequence number, of one trace. */
TRACEFS_READER_API int tracefs_reader_seek_time(tracefs_reader* reader,
                                                uint64_t time);
TRACEFS_READER_API int tracefs_reader_seek_block(tracefs_reader* reader,
                                                 size_t trace, uint64_t block);

/* A reader is read in one of the ways that follow; the first call decides. */

/* --- Events, in order of their begin times -------------------------------- */

TRACEFS_READER_API int tracefs_reader_next(tracefs_reader* reader,
                                           const tracefs_event** event);

/* Fields are numbered as the arguments of the format (FORMAT.md); some are made
 * by the reader. */
enum {
  TRACEFS_FIELD_DURATION = 2,
  TRACEFS_FIELD_TID = 3,
  TRACEFS_FIELD_PID = 4,
  TRACEFS_FIELD_INODE = 10,
  TRACEFS_FIELD_FH = 13,
  TRACEFS_FIELD_OFFSET = 16,
  TRACEFS_FIELD_SIZE = 18,
  TRACEFS_FIELD_FLAGS = 19,
  TRACEFS_FIELD_UID = 24,
  TRACEFS_FIELD_GID = 25,
  TRACEFS_FIELD_RESULT = 40, /* signed */
  TRACEFS_FIELD_ERRNO = 41,  /* absent, or 0, where it did not fail */
  TRACEFS_FIELD_PATH = 67,   /* whole, wherever it can be told */
  TRACEFS_FIELD_NEW_PATH = 68,
  TRACEFS_FIELD_COMM = 71,
  TRACEFS_FIELD_TIME = 0x10001,   /* ns since 1970 */
  TRACEFS_FIELD_OP = 0x10002,     /* number; as text: its name */
  TRACEFS_FIELD_TRACER = 0x10003, /* which tracer of the mount */
  TRACEFS_FIELD_BEFORE = 0x10004, /* 1: the operation has not run yet */
  TRACEFS_FIELD_TRACE = 0x10005   /* which trace of the reader; as text: name */
};
enum { TRACEFS_NUMBER = 1, TRACEFS_SIGNED = 2, TRACEFS_TEXT = 3 };

/* The number of the field that is called so in JSON Lines ("uid", "path") or,
 * since 1.1, else in filters ("cuid"); 0 if there is none. `size` and `mode`
 * are those of JSON Lines. */
TRACEFS_READER_API uint32_t tracefs_field_by_name(const char* name);
/* Its name (null if there is no such field; ends with NUL) and what it is. */
TRACEFS_READER_API const char* tracefs_field_name(uint32_t field);
TRACEFS_READER_API int tracefs_field_type(uint32_t field);
/* All fields that this version knows, one after the other: the first for 0;
 * 0 after the last. */
TRACEFS_READER_API uint32_t tracefs_field_after(uint32_t field);

/* 1 and the value, or 0 where the event does not have that field. Signed
 * numbers are in two's complement. */
TRACEFS_READER_API int tracefs_event_number(const tracefs_event* event,
                                            uint32_t field, uint64_t* value);
TRACEFS_READER_API int tracefs_event_text(const tracefs_event* event,
                                          uint32_t field, const char** text,
                                          size_t* size);
/* The name of the operation; ends with NUL. */
TRACEFS_READER_API const char* tracefs_event_op(const tracefs_event* event);

/* An argument as it stands in the trace. */
typedef struct tracefs_argument {
  uint32_t id;
  uint32_t type;    /* FORMAT.md section 5; 14 (bytes) if not described */
  const char* name; /* as the trace describes it; ends with NUL */
  const void* value;
  size_t size;
  int is_number; /* of 1, 2, 4 or 8 bytes: */
  uint64_t number;
  uint64_t reserved[2];
} tracefs_argument;

/* Arguments that this version does not know, one after the other; TRACEFS_END
 * if there is none of that number. */
TRACEFS_READER_API int tracefs_event_extra(const tracefs_event* event,
                                           size_t number,
                                           tracefs_argument* argument);

/* --- Processes, in order of time (since 1.1) ------------------------------ */

/* What happened to a process, where the trace has it (STR_PROCESS). */
enum {
  TRACEFS_PROCESS_FORK = 1,   /* it made a process, or a thread (clone_flags) */
  TRACEFS_PROCESS_EXEC = 2,   /* it runs another program now */
  TRACEFS_PROCESS_EXIT = 3,   /* it ended; or, where tid is not pid, a thread */
  TRACEFS_PROCESS_COMM = 4,   /* it gave itself another name */
  TRACEFS_PROCESS_PIPES = 5,  /* its descriptors that are pipes */
  TRACEFS_PROCESS_RUNNING = 6 /* it was there when recording began */
};
/* In tracefs_process.flags. */
enum {
  TRACEFS_PROCESS_LATE = 1,       /* some was read when it could have gone on */
  TRACEFS_PROCESS_INCOMPLETE = 2, /* something could not be read, or was long */
  TRACEFS_PROCESS_CORE = 4        /* a core was dumped */
};
/* Not ended by NUL. Null: not known, or not of this kind of record. */
typedef struct tracefs_text {
  const char* text;
  size_t size;
} tracefs_text;
typedef struct tracefs_pipe {
  uint32_t fd;
  uint32_t access; /* 0 read, 1 write, 2 both */
  uint64_t inode;  /* of the pipe: both ends have the same */
} tracefs_pipe;
/* 0: not known, or not of this kind of record. */
typedef struct tracefs_process {
  uint32_t kind;  /* TRACEFS_PROCESS_…; others may come */
  uint32_t flags; /* likewise */
  uint64_t time;  /* ns since 1970 */
  size_t trace;   /* which trace of the reader */
  uint32_t tracer;
  uint32_t source; /* 1 ptrace, 2 proc connector, 3 trace points */
  uint32_t pid;
  uint32_t tid; /* the thread that did it */
  uint32_t ppid;
  uint32_t ns_pid; /* as its own pid namespace numbers it */
  uint64_t key;    /* the process for good, when pids are used again */
  /* Of a fork. */
  uint64_t child_key;
  uint32_t child_pid;
  uint32_t child_tid;
  uint32_t child_ns_pid;
  /* For an exit: one is -1, or both. */
  int32_t exit_code;
  int32_t exit_signal;
  int32_t cpu;          /* -1: not known */
  int64_t clone_flags;  /* -1: not known */
  tracefs_text program; /* what was to run, as it was given */
  tracefs_text exe;     /* what runs: of a script its interpreter */
  tracefs_text cwd;
  tracefs_text argv;        /* each argument and a NUL */
  tracefs_text environment; /* likewise */
  tracefs_text comm;
  tracefs_text cgroup;
  const tracefs_pipe* pipes;
  size_t pipe_count;
  uint64_t reserved[8];
} tracefs_process;

/* Records of processes, and of them those in the range; the filter is for
 * events. What they point to is valid until the next call. */
TRACEFS_READER_API int tracefs_reader_next_process(tracefs_reader* reader,
                                                   tracefs_process* process);

/* --- Messages as they stand in the file, known or not --------------------- */

typedef struct tracefs_message {
  uint32_t id;
  uint32_t reserved0;
  const char* name; /* as the trace describes it; ends with NUL */
  size_t trace;
  uint64_t block;    /* sequence number */
  uint64_t offset;   /* of its block in the input */
  const void* bytes; /* with its head of six bytes */
  size_t size;
  uint64_t reserved[4];
} tracefs_message;

TRACEFS_READER_API int tracefs_reader_next_message(tracefs_reader* reader,
                                                   tracefs_message* message);
/* The arguments of the message that came last, from *at = 0 on. */
TRACEFS_READER_API int tracefs_reader_next_argument(tracefs_reader* reader,
                                                    size_t* at,
                                                    tracefs_argument* argument);

/* --- Blocks as they are stored, not decoded ------------------------------- */

typedef struct tracefs_block {
  const void* bytes; /* the frame: head and payload; or a preamble */
  size_t size;
  size_t trace;
  uint64_t offset; /* in the input */
  uint64_t number; /* sequence number */
  uint32_t kind;   /* 0: the preamble; 1: messages; others: FORMAT.md */
  uint32_t reserved0;
  uint64_t reserved[4];
} tracefs_block;

/* All of them one after the other are the trace, byte for byte, but for what is
 * damaged. Nothing is decoded, and no key is needed. */
TRACEFS_READER_API int tracefs_reader_next_block(tracefs_reader* reader,
                                                 tracefs_block* block);

/* --- Columns: Arrow's C data interface ------------------------------------ */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif

/* The rest of the reader's events as a stream of record batches. `columns` are
 * names of fields (tracefs_field_by_name) with commas between; null: those that
 * JSON Lines has in the first place. A field of text is a dictionary of UTF-8,
 * with U+FFFD for bytes that are none; with "_raw" after its name one of
 * bytes. `ts` is a timestamp in ns without a zone (UTC).
 *
 * The stream and its batches belong to the caller, who releases them. The
 * reader may be closed before; it is used by one thread at a time, stream and
 * all. */
TRACEFS_READER_API int tracefs_reader_columns(tracefs_reader* reader,
                                              const char* columns,
                                              struct ArrowArrayStream* stream);

/* "1.1.0", of the library; the newest format version that it knows. */
TRACEFS_READER_API const char* tracefs_reader_version(void);
TRACEFS_READER_API unsigned tracefs_reader_format_version(void);

#ifdef __cplusplus
}
#endif
#endif
