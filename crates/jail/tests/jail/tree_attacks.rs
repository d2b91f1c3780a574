//! What hostile code tries in a tree: to see, to write, to call and to reach what is not its own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use jail::cgroup::Manager;
use jail::program::{Content, SpawnError, Tree, shields_sockets};

use crate::trees::{Ground, groups, interpreter, mount, passes, python, start};

pub fn see_nothing_of_the_host() {
    let ground = Ground::new();
    let secret = ground.folder.join("secret");
    // SAFETY: this process has no other thread; only its own children could see it.
    unsafe { std::env::set_var("JAIL_TEST_SECRET", "host secret") };
    let script = format!("secret = {:?}\nhost = {}\n", secret.display().to_string(), std::process::id());
    passes(ground.python(&(script + r#"
import os
assert set(os.environ) - {'LC_CTYPE'} == {'PATH', 'HOME', 'TMPDIR'}, os.environ
assert sorted(os.listdir('/')) == sorted(set(os.listdir('/')) - {'root', 'sys', 'var', 'run', 'mnt', 'boot', 'srv', 'work'})
def refused(call, *arguments):
    try: call(*arguments)
    except OSError as error: return error
    raise AssertionError(f'{call} {arguments} was not refused')
for path in [secret, '/etc/shadow', '/root', '/sys', '/shared/absolute', '/shared/relative', '/shared/../../secret',
             '/proc/1/root', '/proc/1/cwd', '/proc/1/root/etc/shadow', '/proc/1/fd', '/proc/1/exe', '/dev/kmsg', '/dev/mem', '/dev/tty']:
    refused(os.listdir if path.endswith(('root', 'sys', 'cwd', 'fd')) else open, path)
for path in ['/proc/1/environ', '/proc/1/mem', '/proc/1/maps', f'/proc/{host}/environ', f'/proc/{host}/status', '/proc/kcore', '/proc/sysrq-trigger',
             '/proc/keys', '/proc/kallsyms', '/proc/sys/kernel/core_pattern', '/proc/cmdline', '/proc/config.gz', '/proc/interrupts']:
    refused(open, path, 'rb') if path != '/proc/cmdline' else refused(open, path)
assert os.listdir('/proc/sys') == []
assert open('/proc/1/cmdline').read().strip('\0') == '', open('/proc/1/cmdline').read()
assert open('/proc/1/comm').read() == 'init\n'
assert {int(name) for name in os.listdir('/proc') if name.isdigit()} == {1, os.getpid()}
assert {int(name) for name in os.listdir('/proc/self/fd')} <= {0, 1, 2, 3}
assert sorted(os.listdir('/dev')) == sorted(['null', 'zero', 'full', 'random', 'urandom', 'fd', 'stdin', 'stdout', 'stderr', 'shm'])
open('/dev/null', 'wb').write(b'x'); assert len(open('/dev/urandom', 'rb').read(8)) == 8; open('/dev/stdout', 'w').write('')
for signal in (0, 9): refused(os.kill, host, signal)
for name in ['su', 'sudo', 'mount', 'umount', 'passwd', 'apt', 'dpkg']:
    assert not os.access('/usr/bin/' + name, os.X_OK) and not os.access('/usr/bin/' + name, os.R_OK), name
for line in open('/proc/self/status'):
    name, value = line.split(':')
    if name.startswith('Cap'): assert int(value, 16) == 0, line
    if name == 'NoNewPrivs': assert value.strip() == '1'
    if name == 'Seccomp': assert value.strip() == '2'
"#)));
}

pub fn write_only_where_they_may() {
    let ground = Ground::new();
    ground.give_to_nobody();
    passes(ground.python(r#"
import os, errno, ctypes
def refused(call, *arguments):
    try: call(*arguments)
    except OSError as error: return error.errno
    raise AssertionError(f'{call} {arguments} was not refused')
for path in ['/x', '/usr/x', '/usr/bin/x', '/etc/passwd', '/etc/x', '/proc/self/comm', '/dev/x', '/bin/x', '/etc/ssl/certs/x']:
    refused(open, path, 'w')
open('/shared/new', 'w').write('from inside'); os.mkdir('/shared/folder'); os.rename('/shared/new', '/shared/folder/new')
for mode in (0o4755, 0o2755): refused(os.chmod, '/shared/folder/new', mode)
refused(os.open, '/shared/setuid', os.O_CREAT | os.O_WRONLY, 0o4755)
refused(os.mkfifo, '/x'); os.mkfifo('/tmp/fifo'); refused(os.mknod, '/shared/device', 0o020666, os.makedev(1, 1))
refused(os.link, '/usr/bin/env', '/shared/env')
refused(os.open, '/shared/absolute', os.O_CREAT | os.O_WRONLY); refused(os.open, '/shared/relative', os.O_WRONLY)
refused(os.chown, '/shared/folder/new', 0, 0)
# A program cannot be run from where one can only write.
open('/tmp/run', 'w').write('#!/bin/sh\n'); os.chmod('/tmp/run', 0o755)
assert refused(os.execv, '/tmp/run', ['run']) == errno.EACCES
open('/shared/run', 'w').write('#!/bin/sh\nexit 5\n'); os.chmod('/shared/run', 0o755)
assert os.waitstatus_to_exitcode(os.system('/shared/run')) == 5
# Bounds of files: bytes and number, and the size of one.
written = 0
try:
    with open('/tmp/full', 'wb', 0) as file:
        while True: written += file.write(b'x' * 65536)
except OSError as error: assert error.errno == errno.ENOSPC, error
assert 3 << 20 <= written <= 4 << 20, written
os.remove('/tmp/full')
made = 0
try:
    while True: open(f'/tmp/{made}', 'w').close(); made += 1
except OSError as error: assert error.errno == errno.ENOSPC, error
assert 90 <= made < 100, made
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open('/shared/large', 'wb') as file:
    assert refused(os.truncate, file.fileno(), 17 << 20) == errno.EFBIG
os.remove('/shared/large')
"#));
    let new = ground.folder.join("shared/folder/new");
    assert_eq!(fs::read_to_string(&new).expect("what was written"), "from inside");
    let owner = fs::metadata(&new).expect("an owner");
    assert_eq!((owner.uid(), owner.gid()), (65534, 65534));
    assert_eq!(fs::read_to_string(ground.folder.join("secret")).expect("the secret"), "secret");
    assert!(!Path::new("/tmp/run").exists());
}

/// A set-user-id program of root's in a shared folder runs as whoever starts it.
pub fn gain_nothing_from_set_user_id_files() {
    let ground = Ground::new();
    let program = ground.folder.join("shared/id");
    fs::copy("/usr/bin/id", &program).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).expect("a set-user-id bit");
    let said = passes(start(&ground.tree(), None, "/shared/id", &[]));
    assert!(said.starts_with("uid=1000(user) gid=1000(user)") && !said.contains("euid"), "{said}");
}

/// Root's own folders can be shared, too: the tree is root's user then, without anything that makes root powerful.
pub fn write_as_the_owner_of_what_is_shared() {
    let ground = Ground::new();
    let script = "open('/shared/new', 'w').close(); import os; assert os.getuid() == 1000";
    let as_user = |user, groups: Option<&Manager>| {
        let tree = Tree { reads_as: Some(user), ..ground.tree() };
        let variables = [("PATH", "/usr/bin")];
        tree.spawn(groups, &interpreter("python3"), &["-c", script], &variables)
    };
    // Nobody counts the processes of root's user but a control group.
    assert!(matches!(as_user(0, None), Err(SpawnError::Unbounded)));
    if let Some(groups) = groups() {
        passes(as_user(0, Some(&groups)).expect("a tree"));
        assert_eq!(fs::metadata(ground.folder.join("shared/new")).expect("a file").uid(), 0);
        fs::remove_file(ground.folder.join("shared/new")).expect("a file");
    }
    std::os::unix::fs::chown(ground.folder.join("shared"), Some(4321), Some(4321)).expect("another owner");
    passes(as_user(4321, None).expect("a tree"));
    let owner = fs::metadata(ground.folder.join("shared/new")).expect("a file");
    assert_eq!((owner.uid(), owner.gid()), (4321, 4321));
}

pub fn are_refused_dangerous_calls() {
    let ground = Ground::new();
    let script = r#"
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def answer(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(argument) for argument in arguments])
    return 'allowed' if result != -1 else errno.errorcode[ctypes.get_errno()]
calls = dict(ptrace=(101, 0), mount=(165, 0, 0, 0, 0, 0), umount2=(166, 0, 0), pivot_root=(155, 0, 0), chroot=(161, 0), unshare=(272, 0x10000000),
    setns=(308, 0, 0), keyctl=(250, 0, -3, 1), add_key=(248, 0, 0, 0, 0, 0), request_key=(249, 0, 0, 0, 0), bpf=(321, 0, 0, 0), perf_event_open=(298, 0, 0, 0, 0, 0),
    userfaultfd=(323, 0), io_uring_setup=(425, 1, 0), io_uring_enter=(426, 0, 0, 0, 0), io_uring_register=(427, 0, 0, 0, 0), process_vm_readv=(310, 1, 0, 0, 0, 0, 0),
    process_vm_writev=(311, 1, 0, 0, 0, 0, 0), kexec_load=(246, 0, 0, 0, 0), init_module=(175, 0, 0, 0), finit_module=(313, 0, 0, 0), delete_module=(176, 0, 0),
    swapon=(167, 0, 0), reboot=(169, 0, 0, 0), quotactl=(179, 0, 0, 0, 0), acct=(163, 0), syslog=(103, 3, 0, 0), settimeofday=(164, 0, 0), clock_settime=(227, 0, 0),
    adjtimex=(159, 0), name_to_handle_at=(303, 0, 0, 0, 0, 0), open_by_handle_at=(304, 0, 0, 0), fanotify_init=(300, 0, 0), pidfd_getfd=(438, 0, 0, 0), kcmp=(312, 1, 1, 0, 0, 0),
    open_tree=(428, 0, 0, 0), move_mount=(429, 0, 0, 0, 0, 0), fsopen=(430, 0, 0), fsmount=(432, 0, 0, 0), mount_setattr=(442, 0, 0, 0, 0, 0), clone3=(435, 0, 0), openat2=(437, 0, 0, 0, 0),
    clone_user=(56, 0x10000000 | 17, 0, 0, 0, 0), clone_net=(56, 0x40000000 | 17, 0, 0, 0, 0), personality=(135, 0x0400000), iopl=(172, 3), ioperm=(173, 0, 1, 1), modify_ldt=(154, 0, 0, 0),
    seccomp=(317, 1, 0, 0), shmget=(29, 0, 4096, 0o1000), msgget=(68, 0, 0o1000), vmsplice=(278, 0, 0, 0, 0), sethostname=(170, 0, 0), memfd_secret=(447, 0), landlock=(444, 0, 0, 1),
    tiocsti=(16, 0, 0x5412, 0), tioclinux=(16, 0, 0x541c, 0), x32_getpid=(0x40000000 + 39,), huge=(9, 0, 1 << 21, 3, 0x40022, -1, 0), grows=(9, 0, 4096, 3, 0x122, -1, 0))
for name, (number, *arguments) in calls.items():
    assert answer(number, *arguments) == 'ENOSYS', (name, answer(number, *arguments))
for family, kind, protocol in [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_DGRAM, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_NETLINK, socket.SOCK_RAW, 15),
                               (socket.AF_NETLINK, socket.SOCK_RAW, 12), (socket.AF_NETLINK, socket.SOCK_RAW, 0), (socket.AF_NETLINK, socket.SOCK_DGRAM, 0), (38, 5, 0), (40, 1, 0), (31, 3, 1), (socket.AF_INET, 5, 132)]:
    try: socket.socket(family, kind, protocol)
    except OSError as error: assert error.errno == errno.ENOSYS, (family, kind, protocol, error)
    else: raise AssertionError((family, kind, protocol))
def shared():
    return answer(9, 0, 4096, 3, 0x21, -1, 0), answer(319, ctypes.addressof(ctypes.create_string_buffer(b'x')), 0)
"#;
    let hidden = "assert shared() == ('ENOSYS', 'ENOSYS'), shared()";
    passes(ground.python(&format!("{script}{hidden}")));
    if let Some(groups) = groups() {
        let counted = "assert shared() == ('allowed', 'allowed'), shared()";
        passes(python(&ground.tree(), Some(&groups), &format!("{script}{counted}")));
    }
}

pub fn have_a_network_with_nobody_in_it() {
    let ground = Ground::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let name = format!("jail-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("a listener");
    let script = format!("port = {port}\nname = {name:?}\n");
    passes(ground.python(
        &(script
            + r#"
import errno, os, socket, threading
def fails(family, kind, address, *errors):
    with socket.socket(family, kind) as there:
        there.settimeout(5)
        try: there.connect(address); there.send(b'x')
        except OSError as error: assert error.errno in errors, (address, error)
        else: raise AssertionError(address)
fails(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', port), errno.ECONNREFUSED)
for address in ['192.0.2.1', '10.0.0.1', '169.254.169.254']:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM): fails(socket.AF_INET, kind, (address, 80), errno.ENETUNREACH)
fails(socket.AF_INET6, socket.SOCK_STREAM, ('2001:db8::1', 80), errno.ENETUNREACH, errno.EADDRNOTAVAIL)
fails(socket.AF_UNIX, socket.SOCK_STREAM, '\0' + name, errno.ECONNREFUSED)
assert socket.if_nametoindex('lo') == 1
def serve(family, address):
    here = socket.socket(family); here.bind(address); here.listen()
    thread = threading.Thread(target=lambda: here.accept()[0].sendall(b'hello')); thread.start()
    there = socket.socket(family); there.connect(here.getsockname()); assert there.recv(9) == b'hello'; thread.join()
serve(socket.AF_INET, ('127.0.0.1', 0)); serve(socket.AF_UNIX, '/tmp/socket'); serve(socket.AF_UNIX, '\0' + name)
"#),
    ));
}

/// `/usr` is the same file for every tenant: whether a page of it is in memory tells what the others do.
pub fn cannot_tell_what_others_have_read() {
    let ground = Ground::new();
    passes(ground.python(
        r#"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def answer(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_long(argument) for argument in arguments])
    return 'allowed' if result != -1 else errno.errorcode[ctypes.get_errno()]
fd = os.open('/usr/bin/env', os.O_RDONLY)
buffer = ctypes.create_string_buffer(4096)
pieces = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 4096)
read = lambda flags: answer(327, fd, ctypes.addressof(pieces), 1, 0, 0, flags)
assert read(0) == 'allowed'
for flags in (0x8, 0x80, 0x88, 0x1): assert read(flags) == 'ENOSYS', (flags, read(flags))
new = os.open('/tmp/new', os.O_CREAT | os.O_RDWR)
write = lambda flags: answer(328, new, ctypes.addressof(pieces), 1, 0, 0, flags)
for flags in (0, 0x2, 0x4, 0x10): assert write(flags) == 'allowed', (flags, write(flags))
for flags in (0x8, 0x80): assert write(flags) == 'ENOSYS', (flags, write(flags))
for advice in (0, 1, 2, 3): os.posix_fadvise(fd, 0, 0, advice)
assert answer(221, fd, 0, 0, 4) == 'ENOSYS' and answer(221, fd, 0, 0, 5) == 'ENOSYS'
memory = libc.mmap; memory.restype = ctypes.c_long
place = libc.mmap(0, 4096, 1, 2, fd, 0)
vector = ctypes.create_string_buffer(1)
assert answer(27, place, 4096, ctypes.addressof(vector)) == 'ENOSYS'  # mincore
for advice in (4, 10, 11, 16, 17): assert answer(28, place, 4096, advice) == 'allowed', advice
for advice in (12, 20, 21): assert answer(28, place, 4096, advice) == 'ENOSYS', advice
for name, number in dict(cachestat=451, readahead=187, sync_file_range=277, io_submit=209).items():
    assert answer(number, fd, 0, 0, 0, 0) == 'ENOSYS', name
"#,
    ));
}

pub fn set_no_options_of_sockets_that_they_do_not_need() {
    let ground = Ground::new();
    passes(ground.python(
        r#"
import asyncio, errno, http.server, socket, threading, urllib.request
def refused(there, level, option, value=1):
    try: there.setsockopt(level, option, value)
    except OSError as error: assert error.errno == errno.ENOSYS, (level, option, error)
    else: raise AssertionError((level, option))
filter = b'\x06\0\0\0\xff\xff\xff\xff'
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    there = socket.socket(socket.AF_INET, kind)
    import ctypes, struct
    program = ctypes.create_string_buffer(filter)
    refused(there, socket.SOL_SOCKET, 26, struct.pack('HxxxxxxP', 1, ctypes.addressof(program)))  # SO_ATTACH_FILTER
    for option in (27, 44, 50, 51, 52, 12, 25, 32, 33, 36, 46, 53, 60, 61, 69): refused(there, socket.SOL_SOCKET, option)
    for option in (4, 10, 11, 12, 15, 32, 35, 41, 64): refused(there, socket.IPPROTO_IP, option)
    for level in (132, 136, 270, 279, 282, 284): refused(there, level, 1)
there = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
for option in (13, 14, 19, 31, 38): refused(there, socket.IPPROTO_TCP, option, b'tls\0')
for option in (1, 22, 34, 67): refused(socket.socket(socket.AF_INET6, socket.SOCK_STREAM), socket.IPPROTO_IPV6, option)
try: there.getsockopt(socket.IPPROTO_TCP, 35, 64)  # TCP_ZEROCOPY_RECEIVE
except OSError as error: assert error.errno == errno.ENOSYS
else: raise AssertionError('zero copy')
# What servers and clients do set.
for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT, socket.SO_KEEPALIVE, socket.SO_BROADCAST, socket.SO_SNDBUF, socket.SO_RCVBUF):
    there.setsockopt(socket.SOL_SOCKET, option, 1); there.getsockopt(socket.SOL_SOCKET, option)
for option in (socket.TCP_NODELAY, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT): there.setsockopt(socket.IPPROTO_TCP, option, 1)
here = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=here.serve_forever, daemon=True).start()
urllib.request.urlopen(f'http://127.0.0.1:{here.server_port}/').read(); here.shutdown()
async def both():
    async def serve(reader, writer): writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()); writer.write(b'hello\n')
    assert await reader.readline() == b'hello\n'
asyncio.run(both())
"#,
    ));
}

/// A socket with a path leads to whoever listens there, though the folder that it lies in is shown read-only.
pub fn connect_to_no_socket_of_the_host() {
    let ground = Ground::new();
    ground.give_to_nobody();
    let path = ground.folder.join("shared/socket");
    let listener = UnixListener::bind(&path).expect("a listener");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("permissions");
    listener.set_nonblocking(true).expect("no waiting");
    let script = r#"
import asyncio, multiprocessing, os, socket, subprocess
reached = False
for path in ['/shared/socket', '/read/socket']:
    for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM | socket.SOCK_NONBLOCK):
        try: socket.socket(socket.AF_UNIX, kind).connect(path); reached = True
        except OSError as error: pass
a, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'
async def main(): await asyncio.to_thread(os.getpid); await (await asyncio.create_subprocess_exec('true')).wait()
asyncio.run(main())
with multiprocessing.get_context('fork').Pool(2) as pool: assert pool.map(abs, [-1]) == [1]
print('reached' if reached else 'kept', end='')
"#;
    let mut tree = ground.tree();
    let read = Content::Host { source: ground.folder.join("shared"), executable: false };
    tree.mounts.push(mount("/read", read));
    let closed = Tree { unix_sockets: false, ..tree.clone() };
    assert_eq!(passes(python(&closed, None, script)), "kept");
    if let Some(groups) = groups() {
        assert_eq!(passes(python(&closed, Some(&groups), script)), "kept");
    }
    assert!(listener.accept().is_err(), "somebody came");
    let expected = if shields_sockets() { "kept" } else { "reached" };
    assert_eq!(passes(python(&tree, None, script)), expected);
    if interpreter_is_there("node") {
        let node = r#"
            const net = require('net'), { execFileSync, fork } = require('child_process');
            net.connect('/shared/socket').on('connect', () => process.exit(1)).on('error', () => {
                execFileSync('true');
                if (process.send) return process.send('here');
                require('fs').writeFileSync('/tmp/child.js', 'process.send(7)');
                fork('/tmp/child.js').on('message', seven => process.exit(seven === 7 ? 0 : 2));
            });"#;
        passes(start(&closed, None, &interpreter("node"), &["-e", node]));
    }
}

fn interpreter_is_there(name: &str) -> bool {
    let there = Path::new("/usr/bin").join(name).exists();
    if !there {
        eprintln!("THIS HOST HAS NO /usr/bin/{name}, SO NOTHING OF IT WAS TRIED");
    }
    there
}
