// Native code inside the sealed process: what an attacker has who broke out of V8 completely.
//
// Built by the test with `cc -shared -fPIC -O1` and preloaded before the worker. The number in the environment
// variable BULKHEAD_PAYLOAD picks one attempt; without it this library only passes on. The worker asks for its own
// usage (`getrusage`) when it answers a call, in the sealed process and nowhere else: there the attempt is made,
// once that process has read a request. Every attempt must end in SIGSYS. One that returns, whatever it returned,
// says so: `ESCAPED <number> <result> <errno>` on the channel, and the process ends.
//
// An attempt makes exactly one system call that the filter of a call forbids; what it needs before that are calls
// which the filter allows, and static data. Arguments are such that a hole in the jail does the machine no harm:
// signals are signal 0, a reboot has the wrong magic number.
//
// The test reads the names of the attempts from the lines below that begin with `// attempt`.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__x86_64__)
#error "the attempts are written down in the numbers of x86-64"
#endif

enum { CHANNEL = 3, USAGE_OF_SELF = 0, COMPUTE = 1000 };

// Calls that older headers have no name for.
enum {
    USELIB = 134,
    RSEQ = 334,
    PIDFD_SEND_SIGNAL = 424,
    IO_URING_SETUP = 425,
    OPEN_TREE = 428,
    MOVE_MOUNT = 429,
    FSOPEN = 430,
    FSMOUNT = 432,
    PIDFD_OPEN = 434,
    CLONE3 = 435,
    CLOSE_RANGE = 436,
    OPENAT2 = 437,
    PIDFD_GETFD = 438,
    FACCESSAT2 = 439,
    PROCESS_MADVISE = 440,
    MOUNT_SETATTR = 442,
    LANDLOCK_CREATE_RULESET = 444,
    MEMFD_SECRET = 447,
    FUTEX_WAITV = 449,
    MAP_SHADOW_STACK = 453,
    LISTMOUNT = 458,
    LSM_SET_SELF_ATTR = 460,
    MSEAL = 462,
    NO_SUCH_CALL = 100000,
};

// The kernel's answer as it is: a small negative number is an error.
static long raw(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define S6(n, a, b, c, d, e, f) \
    raw((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define S5(n, a, b, c, d, e) S6(n, a, b, c, d, e, 0)
#define S4(n, a, b, c, d) S6(n, a, b, c, d, 0, 0)
#define S3(n, a, b, c) S6(n, a, b, c, 0, 0, 0)
#define S2(n, a, b) S6(n, a, b, 0, 0, 0, 0)
#define S1(n, a) S6(n, a, 0, 0, 0, 0, 0)
#define S0(n) S6(n, 0, 0, 0, 0, 0, 0)

static char scratch[4096];
static long zeros[16];
static const long all[2] = {-1, -1};
static const int one[1] = {1};
static long instant[2] = {0, 1};
static unsigned handle[4] = {8, 1, 0, 0};
static struct { char *base; unsigned long length; } vector[1] = {{scratch, 1}};
static struct { int fd; short events, revents; } polls[2] = {{CHANNEL, 1, 0}, {CHANNEL, 1, 0}};
static const unsigned long clone_namespace[11] = {0x10000000, 0, 0, 0, SIGCHLD};
static const unsigned event[28] = {1, 112};
static const void *const ignore[4] = {SIG_IGN, 0, 0, 0};
static struct sock_filter allow_all[1] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog permissive[1] = {{1, allow_all}};

static void *page(void) { return (void *)S6(SYS_mmap, 0, 4096, 3, 0x22, -1, 0); }

static void *own_code(void) { return (void *)&raw; }

// A message of one byte that carries the channel's own descriptor.
static struct msghdr *descriptor_message(void) {
    static struct iovec bytes = {scratch, 1};
    static union { struct cmsghdr head; char space[CMSG_SPACE(sizeof(int))]; } control;
    static struct msghdr message;
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    *(int *)CMSG_DATA(&control.head) = CHANNEL;
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    return &message;
}

// The old gate of 32-bit programs, with numbers of its own: 20 is getpid.
static long getpid_of_32_bits(void) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "r8", "r9", "r10", "r11", "memory");
    return result;
}

static int has_32_bit_calls;

static long attempt(int number) {
    switch (number) {
// attempt 1: read a file of the host
    case 1: return S2(SYS_open, "/etc/passwd", O_RDONLY);
// attempt 2: open by openat
    case 2: return S3(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY);
// attempt 3: open by openat2
    case 3: return S4(OPENAT2, AT_FDCWD, "/proc/1/root", zeros, 24);
// attempt 4: open its own memory
    case 4: return S2(SYS_open, "/proc/self/mem", O_RDWR);
// attempt 5: open the root directory
    case 5: return S2(SYS_open, "/", O_RDONLY | O_DIRECTORY);
// attempt 6: create a file
    case 6: return S2(SYS_creat, "/payload", 0600);
// attempt 7: list a directory
    case 7: return S3(SYS_getdents64, 3, scratch, sizeof scratch);
// attempt 8: look at a file
    case 8: return S4(SYS_newfstatat, AT_FDCWD, "/etc/passwd", scratch, 0);
// attempt 9: ask for access
    case 9: return S4(FACCESSAT2, AT_FDCWD, "/etc/shadow", 4, 0);
// attempt 10: read a link
    case 10: return S3(SYS_readlink, "/proc/self/exe", scratch, sizeof scratch);
// attempt 11: ask for the working directory
    case 11: return S2(SYS_getcwd, scratch, sizeof scratch);
// attempt 12: change the working directory
    case 12: return S1(SYS_chdir, "/");
// attempt 13: make a directory
    case 13: return S2(SYS_mkdir, "/payload", 0700);
// attempt 14: remove a file
    case 14: return S1(SYS_unlink, "/payload");
// attempt 15: rename a file
    case 15: return S2(SYS_rename, "/payload", "/payload2");
// attempt 16: make a link
    case 16: return S2(SYS_symlink, "/etc", "/payload");
// attempt 17: make a device
    case 17: return S3(SYS_mknod, "/payload", 0020600, 0x0101);
// attempt 18: change a mode
    case 18: return S2(SYS_chmod, "/payload", 04777);
// attempt 19: change an owner
    case 19: return S3(SYS_chown, "/payload", 0, 0);
// attempt 20: change times
    case 20: return S4(SYS_utimensat, AT_FDCWD, "/payload", 0, 0);
// attempt 21: truncate its channel
    case 21: return S2(SYS_ftruncate, 3, 0);
// attempt 22: set an attribute
    case 22: return S5(SYS_setxattr, "/payload", "user.x", "y", 1, 0);
// attempt 23: set the file mode mask
    case 23: return S1(SYS_umask, 0);
// attempt 24: write everything to disk
    case 24: return S0(SYS_sync);
// attempt 25: ask for a file handle
    case 25: return S5(SYS_name_to_handle_at, AT_FDCWD, "/", scratch, scratch, 0);
// attempt 26: open a file handle
    case 26: return S3(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
// attempt 27: watch files with inotify
    case 27: return S1(SYS_inotify_init1, 0);
// attempt 28: watch files with fanotify
    case 28: return S2(SYS_fanotify_init, 0, O_RDONLY);
// attempt 29: copy between descriptors
    case 29: return S6(SYS_copy_file_range, 3, 0, 3, 0, 1, 0);
// attempt 30: send a file
    case 30: return S4(SYS_sendfile, 3, 3, 0, 1);
// attempt 31: splice
    case 31: return S6(SYS_splice, 3, 0, 3, 0, 1, 0);
// attempt 32: map memory into a pipe
    case 32: return S4(SYS_vmsplice, 3, vector, 1, 0);
// attempt 33: control its channel as a device
    case 33: return S3(SYS_ioctl, 3, 0x5412, "x");
// attempt 34: change the flags of its channel
    case 34: return S3(SYS_fcntl, 3, F_SETFL, O_ASYNC);
// attempt 35: claim the signals of its channel
    case 35: return S3(SYS_fcntl, 3, F_SETOWN, 1);
// attempt 36: ask for the flags of its channel as a zygote may
    case 36: return S2(SYS_fcntl, 3, F_GETFD);
// attempt 37: read from standard input
    case 37: return S3(SYS_read, 0, scratch, 1);
// attempt 38: read from another descriptor
    case 38: return S3(SYS_read, 4, scratch, 1);
// attempt 39: write to standard output
    case 39: return S3(SYS_write, 1, "x", 1);
// attempt 40: write to standard error
    case 40: return S3(SYS_write, 2, "x", 1);
// attempt 41: write to another descriptor
    case 41: return S3(SYS_write, 4, "x", 1);
// attempt 42: gather a write to its channel
    case 42: return S3(SYS_writev, 3, vector, 1);
// attempt 43: scatter a read from its channel
    case 43: return S3(SYS_readv, 3, vector, 1);
// attempt 44: read at a position
    case 44: return S4(SYS_pread64, 3, scratch, 1, 0);
// attempt 45: duplicate its channel
    case 45: return S1(SYS_dup, 3);
// attempt 46: duplicate its channel onto standard output
    case 46: return S2(SYS_dup2, 3, 1);
// attempt 47: duplicate its channel as a zygote may
    case 47: return S3(SYS_dup3, 3, 9, 0);
// attempt 48: close its channel
    case 48: return S1(SYS_close, 3);
// attempt 49: close everything as a zygote may
    case 49: return S3(CLOSE_RANGE, 4, 100, 0);
// attempt 50: wait for two descriptors
    case 50: return S5(SYS_ppoll, polls, 2, instant, 0, 8);
// attempt 51: wait with its own signal mask
    case 51: return S5(SYS_ppoll, polls, 1, instant, zeros, 8);
// attempt 52: wait by the old poll
    case 52: return S3(SYS_poll, polls, 1, 0);
// attempt 53: make a pipe
    case 53: return S2(SYS_pipe2, scratch, 0);
// attempt 54: make a pair of sockets
    case 54: return S4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, scratch);
// attempt 55: make an event descriptor
    case 55: return S2(SYS_eventfd2, 0, 0);
// attempt 56: make a signal descriptor
    case 56: return S4(SYS_signalfd4, -1, zeros, 8, 0);
// attempt 57: make a timer descriptor
    case 57: return S2(SYS_timerfd_create, 0, 0);
// attempt 58: make an epoll descriptor
    case 58: return S1(SYS_epoll_create1, 0);
// attempt 59: make a file in memory
    case 59: return S2(SYS_memfd_create, "payload", 0);
// attempt 60: make a secret file in memory
    case 60: return S1(MEMFD_SECRET, 0);
// attempt 61: handle its own page faults
    case 61: return S1(SYS_userfaultfd, 1);
// attempt 62: make an io_uring
    case 62: return S2(IO_URING_SETUP, 4, scratch);
// attempt 63: make an asynchronous context
    case 63: return S2(SYS_io_setup, 1, scratch);
// attempt 64: open an internet socket
    case 64: return S3(SYS_socket, AF_INET, SOCK_STREAM, 0);
// attempt 65: open an internet socket of version 6
    case 65: return S3(SYS_socket, AF_INET6, SOCK_DGRAM, 0);
// attempt 66: open a local socket
    case 66: return S3(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
// attempt 67: open a netlink socket
    case 67: return S3(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
// attempt 68: open a packet socket
    case 68: return S3(SYS_socket, AF_PACKET, SOCK_RAW, 0);
// attempt 69: open a socket to the hypervisor
    case 69: return S3(SYS_socket, 40, SOCK_STREAM, 0);
// attempt 70: connect its channel elsewhere
    case 70: return S3(SYS_connect, 3, "\1\0/x", 4);
// attempt 71: bind its channel
    case 71: return S3(SYS_bind, 3, "\1\0/x", 4);
// attempt 72: listen on its channel
    case 72: return S2(SYS_listen, 3, 1);
// attempt 73: accept on its channel
    case 73: return S4(SYS_accept4, 3, 0, 0, 0);
// attempt 74: send its channel through itself
    case 74: return S3(SYS_sendmsg, 3, descriptor_message(), 0);
// attempt 75: receive a descriptor
    case 75: return S3(SYS_recvmsg, 3, descriptor_message(), 0x40);
// attempt 76: send to an address
    case 76: return S6(SYS_sendto, 3, "x", 1, 0, 0, 0);
// attempt 77: ask who is on the other side
    case 77: return S5(SYS_getsockopt, 3, 1, 17, scratch, scratch + 64);
// attempt 78: change its channel's options
    case 78: return S5(SYS_setsockopt, 3, 1, 8, zeros, 4);
// attempt 79: shut its channel down
    case 79: return S2(SYS_shutdown, 3, 0);
// attempt 80: fork
    case 80: return S0(SYS_fork);
// attempt 81: fork by vfork
    case 81: return S0(SYS_vfork);
// attempt 82: fork as a zygote may
    case 82: return S5(SYS_clone, 0x1000 | SIGCHLD, 0, scratch, 0, 0);
// attempt 83: make a thread
    case 83: return S5(SYS_clone, 0x10f00, scratch + sizeof scratch, 0, 0, 0);
// attempt 84: make a user namespace by clone3
    case 84: return S2(CLONE3, clone_namespace, sizeof clone_namespace);
// attempt 85: execute a program
    case 85: return S3(SYS_execve, "/bin/sh", zeros, zeros);
// attempt 86: execute its channel
    case 86: return S5(SYS_execveat, 3, "", zeros, zeros, 0x1000);
// attempt 87: leave its namespaces
    case 87: return S1(SYS_unshare, 0x10000000);
// attempt 88: enter a namespace
    case 88: return S2(SYS_setns, 3, 0);
// attempt 89: signal the first process
    case 89: return S2(SYS_kill, 1, 0);
// attempt 90: signal everybody
    case 90: return S2(SYS_kill, -1, 0);
// attempt 91: signal its own group
    case 91: return S2(SYS_kill, 0, 0);
// attempt 92: signal a thread of the first process
    case 92: return S3(SYS_tgkill, 1, 1, 0);
// attempt 93: queue a signal
    case 93: return S3(SYS_rt_sigqueueinfo, 1, SIGPROF, scratch);
// attempt 94: be traced
    case 94: return S4(SYS_ptrace, 0, 0, 0, 0);
// attempt 95: trace its parent
    case 95: return S4(SYS_ptrace, 0x4206, 1, 0, 0);
// attempt 96: read another process's memory
    case 96: return S6(SYS_process_vm_readv, 1, vector, 1, vector, 1, 0);
// attempt 97: write another process's memory
    case 97: return S6(SYS_process_vm_writev, 1, vector, 1, vector, 1, 0);
// attempt 98: open another process
    case 98: return S2(PIDFD_OPEN, 1, 0);
// attempt 99: take another process's descriptor
    case 99: return S3(PIDFD_GETFD, 3, 0, 0);
// attempt 100: signal another process by descriptor
    case 100: return S4(PIDFD_SEND_SIGNAL, 3, 0, 0, 0);
// attempt 101: advise another process's memory
    case 101: return S5(PROCESS_MADVISE, 3, vector, 1, 4, 0);
// attempt 102: compare with another process
    case 102: return S5(SYS_kcmp, 1, 1, 0, 0, 0);
// attempt 103: ask for its parent as a zygote may
    case 103: return S0(SYS_getppid);
// attempt 104: collect children as a zygote may
    case 104: return S4(SYS_wait4, -1, scratch, 1, 0);
// attempt 105: start a session
    case 105: return S0(SYS_setsid);
// attempt 106: become another user
    case 106: return S3(SYS_setresuid, 0, 0, 0);
// attempt 107: become another group
    case 107: return S3(SYS_setresgid, 0, 0, 0);
// attempt 108: change its groups
    case 108: return S2(SYS_setgroups, 0, 0);
// attempt 109: take capabilities
    case 109: return S2(SYS_capset, scratch, scratch);
// attempt 110: make itself dumpable
    case 110: return S5(SYS_prctl, 4, 1, 0, 0, 0);
// attempt 111: survive its parent as a zygote must not
    case 111: return S5(SYS_prctl, 1, 0, 0, 0, 0);
// attempt 112: drop its filter by prctl
    case 112: return S5(SYS_prctl, 22, 0, 0, 0, 0);
// attempt 113: add a filter of its own
    case 113: return S3(SYS_seccomp, 1, 0, permissive);
// attempt 114: add a filter with a listener
    case 114: return S3(SYS_seccomp, 1, 8, permissive);
// attempt 115: make a landlock ruleset
    case 115: return S3(LANDLOCK_CREATE_RULESET, 0, 0, 1);
// attempt 116: make memory executable by personality
    case 116: return S1(SYS_personality, 0x0400000);
// attempt 117: change its segment base
    case 117: return S2(SYS_arch_prctl, 0x1003, scratch);
// attempt 118: read its descriptor table
    case 118: return S3(SYS_modify_ldt, 0, scratch, sizeof scratch);
// attempt 119: disarm its CPU timer with setitimer
    case 119: return S3(SYS_setitimer, 2, zeros, 0);
// attempt 120: arm another timer
    case 120: return S3(SYS_setitimer, 0, zeros, 0);
// attempt 121: set an alarm
    case 121: return S1(SYS_alarm, 0);
// attempt 122: make a timer of its own
    case 122: return S3(SYS_timer_create, 2, 0, scratch);
// attempt 123: ignore the CPU signal
    case 123: return S4(SYS_rt_sigaction, SIGPROF, ignore, 0, 8);
// attempt 124: catch the filter's signal
    case 124: return S4(SYS_rt_sigaction, SIGSYS, ignore, 0, 8);
// attempt 125: block the CPU signal
    case 125: return S4(SYS_rt_sigprocmask, 0, all, 0, 8);
// attempt 126: move its signal stack
    case 126: return S2(SYS_sigaltstack, scratch, 0);
// attempt 127: wait for a signal
    case 127: return S4(SYS_rt_sigtimedwait, all, 0, instant, 8);
// attempt 128: sleep
    case 128: return S2(SYS_nanosleep, instant, 0);
// attempt 129: give way to others
    case 129: return S0(SYS_sched_yield);
// attempt 130: choose its processors
    case 130: return S3(SYS_sched_setaffinity, 0, 8, all);
// attempt 131: choose its scheduler
    case 131: return S3(SYS_sched_setscheduler, 0, 1, one);
// attempt 132: raise its priority
    case 132: return S3(SYS_setpriority, 0, 0, -20);
// attempt 133: raise its disk priority
    case 133: return S3(SYS_ioprio_set, 1, 0, 0);
// attempt 134: raise its memory limit
    case 134: return S4(SYS_prlimit64, 0, 2, all, 0);
// attempt 135: read its memory limit as a zygote may
    case 135: return S4(SYS_prlimit64, 0, 2, 0, scratch);
// attempt 136: raise its file limit the old way
    case 136: return S2(SYS_setrlimit, 7, all);
// attempt 137: ask what its children used
    case 137: return S2(SYS_getrusage, -1, scratch);
// attempt 138: ask what processes used
    case 138: return S1(SYS_times, scratch);
// attempt 139: read another process's clock
    case 139: return S2(SYS_clock_gettime, -14, scratch);
// attempt 140: set the clock
    case 140: return S2(SYS_clock_settime, 0, zeros);
// attempt 141: set the time of day
    case 141: return S2(SYS_settimeofday, 0, 0);
// attempt 142: tune the clock
    case 142: return S1(SYS_adjtimex, zeros);
// attempt 143: map memory that can be written and run
    case 143: return S6(SYS_mmap, 0, 4096, 7, 0x22, -1, 0);
// attempt 144: map memory that can be run
    case 144: return S6(SYS_mmap, 0, 4096, 5, 0x22, -1, 0);
// attempt 145: map shared memory
    case 145: return S6(SYS_mmap, 0, 4096, 3, 0x21, -1, 0);
// attempt 146: map its channel
    case 146: return S6(SYS_mmap, 0, 4096, 1, 0x02, 3, 0);
// attempt 147: map memory that grows past its limit
    case 147: return S6(SYS_mmap, 0, 4096, 3, 0x122, -1, 0);
// attempt 148: map huge pages
    case 148: return S6(SYS_mmap, 0, 2097152, 3, 0x40022, -1, 0);
// attempt 149: map locked memory
    case 149: return S6(SYS_mmap, 0, 4096, 3, 0x2022, -1, 0);
// attempt 150: make memory executable
    case 150: return S3(SYS_mprotect, page(), 4096, 5);
// attempt 151: make code writable
    case 151: return S3(SYS_mprotect, (long)own_code() & -4096L, 4096, 7);
// attempt 152: make memory executable by key
    case 152: return S4(SYS_pkey_mprotect, page(), 4096, 5, -1);
// attempt 153: make a memory key
    case 153: return S2(SYS_pkey_alloc, 0, 0);
// attempt 154: remap and keep the old pages
    case 154: return S5(SYS_mremap, page(), 4096, 4096, 5, 0);
// attempt 155: remap to a fixed place
    case 155: return S5(SYS_mremap, page(), 4096, 4096, 3, page());
// attempt 156: remap file pages
    case 156: return S5(SYS_remap_file_pages, page(), 4096, 0, 0, 0);
// attempt 157: merge pages with others
    case 157: return S3(SYS_madvise, page(), 4096, 12);
// attempt 158: poison a page
    case 158: return S3(SYS_madvise, page(), 4096, 100);
// attempt 159: lock memory
    case 159: return S2(SYS_mlock, page(), 4096);
// attempt 160: lock all memory
    case 160: return S1(SYS_mlockall, 1);
// attempt 161: ask which pages are resident
    case 161: return S3(SYS_mincore, page(), 4096, scratch);
// attempt 162: fence other threads
    case 162: return S3(SYS_membarrier, 0, 0, 0);
// attempt 163: map a shadow stack
    case 163: return S3(MAP_SHADOW_STACK, 0, 4096, 0);
// attempt 164: seal memory
    case 164: return S3(MSEAL, page(), 4096, 0);
// attempt 165: set a memory policy
    case 165: return S3(SYS_set_mempolicy, 0, 0, 0);
// attempt 166: move pages of another process
    case 166: return S6(SYS_move_pages, 1, 0, 0, 0, 0, 0);
// attempt 167: get shared memory
    case 167: return S3(SYS_shmget, 0, 4096, 01600);
// attempt 168: attach shared memory
    case 168: return S3(SYS_shmat, 0, 0, 0);
// attempt 169: get a message queue
    case 169: return S2(SYS_msgget, 0, 01600);
// attempt 170: get semaphores
    case 170: return S3(SYS_semget, 0, 1, 01600);
// attempt 171: open a message queue
    case 171: return S4(SYS_mq_open, "payload", O_RDWR | O_CREAT, 0600, 0);
// attempt 172: wait on a shared futex
    case 172: return S6(SYS_futex, scratch, 0, 1, 0, 0, 0);
// attempt 173: requeue a futex
    case 173: return S6(SYS_futex, scratch, 131, 1, 1, scratch + 4, 0);
// attempt 174: lock a futex with priority
    case 174: return S6(SYS_futex, scratch, 134, 0, 0, 0, 0);
// attempt 175: wait on many futexes
    case 175: return S5(FUTEX_WAITV, scratch, 1, 0, 0, 0);
// attempt 176: read another process's lock list
    case 176: return S3(SYS_get_robust_list, 1, scratch, scratch + 8);
// attempt 177: set its lock list
    case 177: return S2(SYS_set_robust_list, zeros, 24);
// attempt 178: mount
    case 178: return S5(SYS_mount, "none", "/", "proc", 0, 0);
// attempt 179: unmount
    case 179: return S2(SYS_umount2, "/payload", 2);
// attempt 180: change the root
    case 180: return S1(SYS_chroot, ".");
// attempt 181: swap the root
    case 181: return S2(SYS_pivot_root, ".", ".");
// attempt 182: open a file system
    case 182: return S2(FSOPEN, "tmpfs", 0);
// attempt 183: mount an open file system
    case 183: return S3(FSMOUNT, 3, 0, 0);
// attempt 184: open a tree of mounts
    case 184: return S3(OPEN_TREE, AT_FDCWD, "/", 1);
// attempt 185: move a mount
    case 185: return S5(MOVE_MOUNT, 3, "", AT_FDCWD, "/payload", 4);
// attempt 186: change a mount
    case 186: return S5(MOUNT_SETATTR, AT_FDCWD, "/", 0, zeros, 32);
// attempt 187: list mounts
    case 187: return S4(LISTMOUNT, zeros, scratch, 1, 0);
// attempt 188: set quotas
    case 188: return S4(SYS_quotactl, 0, 0, 0, 0);
// attempt 189: swap to a file
    case 189: return S2(SYS_swapon, "/payload", 0);
// attempt 190: keep accounts
    case 190: return S1(SYS_acct, "/payload");
// attempt 191: name the machine
    case 191: return S2(SYS_sethostname, 1, 64);
// attempt 192: reboot
    case 192: return S4(SYS_reboot, 0, 0, 0, 0);
// attempt 193: load a kernel module
    case 193: return S3(SYS_init_module, 0, 0, "");
// attempt 194: load a kernel module from its channel
    case 194: return S3(SYS_finit_module, 3, "", 0);
// attempt 195: load another kernel
    case 195: return S4(SYS_kexec_load, 0, 1, 0, 0);
// attempt 196: load another kernel from its channel
    case 196: return S5(SYS_kexec_file_load, 3, 3, 0, "", 0);
// attempt 197: get the ports of the machine
    case 197: return S1(SYS_iopl, 3);
// attempt 198: get one port of the machine
    case 198: return S3(SYS_ioperm, 0x80, 1, 1);
// attempt 199: read the kernel's log
    case 199: return S3(SYS_syslog, 3, scratch, sizeof scratch);
// attempt 200: load a program into the kernel
    case 200: return S3(SYS_bpf, 0, scratch, 72);
// attempt 201: count events of the processor
    case 201: return S5(SYS_perf_event_open, event, 0, -1, -1, 0);
// attempt 202: add a key to the kernel
    case 202: return S5(SYS_add_key, "user", "payload", "x", 1, -3);
// attempt 203: use the kernel's keys
    case 203: return S5(SYS_keyctl, 0, -3, 0, 0, 0);
// attempt 204: ask for a key
    case 204: return S4(SYS_request_key, "user", "payload", 0, 0);
// attempt 205: set a security attribute
    case 205: return S4(LSM_SET_SELF_ATTR, 100, scratch, 32, 0);
// attempt 206: load a library the old way
    case 206: return S1(USELIB, "/lib/libc.so");
// attempt 207: ask for a device the old way
    case 207: return S2(SYS_ustat, 0, scratch);
// attempt 208: ask for file systems the old way
    case 208: return S1(SYS_sysfs, 3);
// attempt 209: ask for the machine's name
    case 209: return S1(SYS_uname, scratch);
// attempt 210: ask for the machine's memory
    case 210: return S1(SYS_sysinfo, scratch);
// attempt 211: ask for its thread
    case 211: return S0(SYS_gettid);
// attempt 212: register a restartable sequence
    case 212: return S4(RSEQ, zeros, 32, 0, 0);
// attempt 213: end only this thread
    case 213: return S1(SYS_exit, 0);
// attempt 214: call a number that does not exist
    case 214: return S0(NO_SUCH_CALL);
// attempt 215: call by the x32 numbers
    case 215: return S0(SYS_getpid | 0x40000000);
// attempt 217: read its own CPU clock
    case 217: return S2(SYS_clock_gettime, 2, scratch);
// attempt 218: read its thread's CPU clock
    case 218: return S2(SYS_clock_gettime, 3, scratch);
// attempt 219: return from a signal that never came
    case 219: return S0(SYS_rt_sigreturn);
// attempt 220: send out of band
    case 220: return S3(SYS_sendmsg, CHANNEL, descriptor_message(), MSG_OOB);
// Not by the filter but by whoever counts: see the test.
    case COMPUTE: for (;;);
// attempt 216: call by the numbers of 32 bits
    case 216: return has_32_bit_calls ? getpid_of_32_bits() : S0(NO_SUCH_CALL);
    }
    return 0;
}

static char *decimal(char *end, long value) {
    unsigned long rest = value < 0 ? -(unsigned long)value : (unsigned long)value;
    do *--end = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) *--end = '-';
    return end;
}

static void report(int number, long answer) {
    static const char word[] = "ESCAPED";
    char text[96];
    char *end = text + sizeof text;
    int failed = answer < 0 && answer > -4096;
    char *start = decimal(end, failed ? -answer : 0);
    *--start = ' ';
    start = decimal(start, failed ? -1 : answer);
    *--start = ' ';
    start = decimal(start, number);
    *--start = ' ';
    for (int i = (int)sizeof word - 2; i >= 0; i--) *--start = word[i];
    S3(SYS_write, CHANNEL, start, end - start);
    S1(SYS_exit_group, 0);
}

static int chosen;
// The process that has read a request, and the one that asked for its usage before, and how often.
static long reader, asker, asked;

// Before the worker clears the environment.
__attribute__((constructor)) static void choose(void) {
    const char *text = getenv("BULKHEAD_PAYLOAD");
    if (text) chosen = atoi(text);
    if (!chosen) return;
    // A kernel without the gate answers with a fault, not with the filter: there is nothing to attempt then.
    int status = 0;
    pid_t probe = fork();
    if (probe == 0) {
        getpid_of_32_bits();
        _exit(0);
    }
    has_32_bit_calls = probe > 0 && waitpid(probe, &status, 0) == probe && WIFEXITED(status);
}

__attribute__((visibility("default"))) ssize_t read(int fd, void *bytes, size_t length) {
    long answer = S3(SYS_read, fd, bytes, length);
    if (chosen && fd == CHANNEL && answer > 0) reader = S0(SYS_getpid);
    if (answer >= 0) return answer;
    *__errno_location() = (int)-answer;
    return -1;
}

__attribute__((visibility("default"))) int getrusage(int who, void *usage) {
    if (chosen && who == USAGE_OF_SELF) {
        long self = S0(SYS_getpid);
        if (asker != self) asked = 0;
        asker = self;
        asked++;
        // The second time at the latest, should the worker read by another way than `read`.
        if (reader == self || asked > 1) report(chosen, attempt(chosen));
    }
    long answer = S2(SYS_getrusage, who, usage);
    if (answer >= 0) return 0;
    *__errno_location() = (int)-answer;
    return -1;
}
