/* Adds the seconds in $CLOCK_FILE to the time of day; the clock that only goes forward is left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  int status = syscall(SYS_clock_gettime, id, now);
  const char *path = getenv("CLOCK_FILE");
  if (status != 0 || id != CLOCK_REALTIME || path == NULL) return status;
  char text[64] = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return status;
  if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atoll(text);
  close(file);
  return status;
}
