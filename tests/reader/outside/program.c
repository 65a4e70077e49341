/* A program of somebody else: counts what each user has read. */
#include <inttypes.h>
#include <stdio.h>
#include <tracefs_reader.h>

static void report(void *context, const tracefs_report *found) {
  ++*(int *)context;
  fprintf(stderr, "%s\n", tracefs_report_text(found));
}

int main(int argc, char **argv) {
  int reports = 0;
  uint64_t events = 0;
  uint64_t of_root = 0;
  const tracefs_event *event;
  tracefs_reader *reader;
  tracefs_options *options = tracefs_options_new();
  if (argc < 2 || options == NULL) return 2;
  tracefs_options_add_path(options, argv[1]);
  tracefs_options_on_report(options, &report, &reports);
  if (argc > 2 && tracefs_options_set_filter(options, argv[2]) < 0) {
    fprintf(stderr, "%s\n", tracefs_options_message(options));
    return 2;
  }
  reader = tracefs_reader_open(options);
  while (tracefs_reader_next(reader, &event) == TRACEFS_ITEM) {
    uint64_t uid;
    ++events;
    if (tracefs_event_number(event, TRACEFS_FIELD_UID, &uid) && uid == 0) {
      ++of_root;
    }
  }
  printf("%" PRIu64 " events, %" PRIu64 " of root, %d reports, %s\n", events,
         of_root, reports,
         tracefs_reader_complete(reader) ? "complete" : "incomplete");
  if (tracefs_reader_status(reader) < 0) {
    fprintf(stderr, "%s\n", tracefs_reader_message(reader));
    return -tracefs_reader_status(reader);
  }
  tracefs_reader_close(reader);
  tracefs_options_free(options);
  return 0;
}
