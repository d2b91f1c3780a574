// A zygote that was taken over: it forks processes that nobody ordered and that do not tie their lives to its own.
//
// Built by the test with `cc -shared -fPIC -O1` and preloaded before the worker. A zygote that receives the words
// `TAKEN OVER` (they stand in the hostile server's source) forks as many sleepers as BULKHEAD_SLEEPERS says, with the one
// kind of `clone` that its filter allows. Every other process only passes on.

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 3, WITH_PIDFD = 0x1000 };

static long sleepers;
static int taken;

// Before the worker clears the environment.
__attribute__((constructor)) static void choose(void) {
    const char *text = getenv("BULKHEAD_SLEEPERS");
    if (text) sleepers = atol(text);
}

static void sleep_for_ever(void) {
    struct pollfd nothing = {-1, 0, 0};
    struct timespec long_time = {1000, 0};
    syscall(SYS_close, CHANNEL);
    for (;;) syscall(SYS_ppoll, &nothing, 1, &long_time, 0, 8);
}

// Where there is no process left, it waits for one that becomes free, and takes that.
static void multiply(void) {
    for (long tries = 0; sleepers > 0 && tries < 20000; tries++) {
        int pidfd = -1;
        long pid = syscall(SYS_clone, WITH_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
        if (pid == 0) sleep_for_ever();
        if (pid > 0) {
            sleepers--;
            syscall(SYS_close, pidfd);
        } else {
            struct pollfd nothing = {-1, 0, 0};
            struct timespec moment = {0, 200000};
            syscall(SYS_ppoll, &nothing, 1, &moment, 0, 8);
        }
    }
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    long count = syscall(SYS_recvmsg, fd, message, flags);
    if (sleepers && count > 0 && memmem(message->msg_iov[0].iov_base, count, "TAKEN OVER", 10)) taken = 1;
    return count;
}

// The zygote asks for children that have ended after each message.
__attribute__((visibility("default"))) pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (taken) {
        taken = 0;
        multiply();
        sleepers = 0;
    }
    return syscall(SYS_wait4, pid, status, options, usage);
}
