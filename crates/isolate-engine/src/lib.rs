//! Brings V8 up inside the process that carries it.
//!
//! V8 comes in a stock executable (docs/v8.md). A worker is a shared library that is preloaded into that
//! executable, takes over before its `main`, and never gives control back: no runtime of the carrier ever runs.
//! The crate that is built as such a library says `isolate_engine::entry!(its_main)` once.
//!
//! No `forbid(unsafe_code)` here: entry point, interposed libc calls and memory layout are `unsafe` by nature, and this
//! crate is where they are kept. Every block says why it holds (clippy denies one that does not).
//!
//! V8 is started single-threaded, with its single-threaded platform: a process that is to be forked
//! with a live isolate must not have other threads.

/// A system call by its number. Each argument is made as wide as the kernel reads it: of a narrower one, what is above it is
/// whatever was there before.
macro_rules! syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        libc::syscall($number $(, $argument as libc::c_long)*)
    };
}

pub mod image;
pub mod layout;
mod modules;

pub use modules::{Modules, resolve};

/// The branch of V8 that the crate `v8` binds. Checked at build by `scripts/v8.sh` and again by [`start`].
pub const V8_BRANCH: &str = "14.6.";

/// Exit codes by which a worker says why it ended itself.
pub mod exit {
    /// V8 or an allocator could not get more memory.
    pub const OUT_OF_MEMORY: i32 = 77;
    /// V8 met a condition it cannot go on from.
    pub const FATAL: i32 = 78;
    /// Something called `abort`.
    pub const ABORTED: i32 = 79;
}

/// Whether V8 may compile to machine code. Decided once per process, before V8 starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// Interpreter only: no executable memory is ever made after start, no WebAssembly.
    Jitless,
    /// All compilers.
    Jit,
}

const COMMON_FLAGS: &str = concat!(
    // Forking needs one thread.
    "--single-threaded ",
    // Catastrophic regular expressions become linear instead of eternal.
    "--enable-experimental-regexp-engine-on-excessive-backtracks ",
    // Its clock is finer than what untrusted code should have.
    "--no-harmony-temporal ",
    // A young generation of at most 12 MiB, so that small memory limits are not all young generation.
    "--max-semi-space-size=4 ",
    // Functions are compiled where they are loaded, in a zygote, once, and not in every fork at its first call.
    "--no-lazy --no-flush-bytecode ",
    // Stack traces of authors' code in errors; more than a screenful helps nobody.
    "--stack-trace-limit=20 ",
    // The main thread's stack is 8 MiB (the jail's RLIMIT_STACK); this never came near crashing.
    "--stack-size=984",
);

/// Starts V8. Call once, first thing, while the process still has one thread and no filter.
pub fn start(compiler: Compiler) -> Result<(), String> {
    let version = v8::V8::get_version();
    if !version.starts_with(V8_BRANCH) {
        return Err(format!(
            "this worker is built for V8 {V8_BRANCH}x and was started in an executable with V8 {version}"
        ));
    }
    silence();
    v8::V8::set_entropy_source(fill_random);
    v8::V8::set_flags_from_string(COMMON_FLAGS);
    if compiler == Compiler::Jitless {
        v8::V8::set_flags_from_string("--jitless");
    }
    let platform = v8::new_single_threaded_default_platform(false).make_shared();
    v8::V8::initialize_platform(platform);
    v8::V8::initialize();
    Ok(())
}

const WORDS: usize = 2048;

/// What was printed last: to standard output, to standard error, and past both with `write`.
static LAST_WORDS: LastWords = LastWords(std::cell::UnsafeCell::new([[0; WORDS]; 3]));

struct LastWords(std::cell::UnsafeCell<[[u8; WORDS]; 3]>);

// SAFETY: a worker has one thread.
unsafe impl Sync for LastWords {}

/// V8 prints before it ends a process, and a filtered process that writes to a terminal is killed for that and
/// not for its reason. From here on what is printed goes into a small piece of memory.
fn silence() {
    unsafe extern "C" {
        static mut stdout: *mut libc::FILE;
        static mut stderr: *mut libc::FILE;
    }
    // SAFETY: one thread, called before V8 prints anything. The buffers are static and as long as is said; a null
    // stream is not used. The old streams are never closed, so no one's pointer to them dangles.
    unsafe {
        let buffers = LAST_WORDS.0.get().cast::<[u8; WORDS]>();
        for (index, stream) in [&raw mut stdout, &raw mut stderr].into_iter().enumerate() {
            let nowhere = libc::fmemopen(buffers.add(index).cast(), WORDS, c"w".as_ptr());
            if !nowhere.is_null() {
                libc::setvbuf(nowhere, std::ptr::null_mut(), libc::_IONBF, 0);
                *stream = nowhere;
            }
        }
    }
}

/// Keeps the beginning of what was printed with `write`.
pub fn note_printed(bytes: &[u8]) {
    // SAFETY: one thread; nobody else holds a reference into this buffer.
    let buffer = unsafe { &mut (*LAST_WORDS.0.get())[2] };
    let used = buffer.iter().position(|byte| *byte == 0).unwrap_or(WORDS);
    let room = &mut buffer[used..];
    let n = room.len().min(bytes.len());
    room[..n].copy_from_slice(&bytes[..n]);
}

/// Ends a process that called `abort`, by the reason it printed before if that was memory.
pub fn exit_aborted() -> ! {
    // SAFETY: one thread, and the buffers are plain bytes that nobody writes while this reads.
    let printed = unsafe { &*LAST_WORDS.0.get() };
    // Allocates nothing: there may be nothing left.
    let says = |text: &[u8], word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
    let memory = printed.iter().any(|text| MEMORY_WORDS.iter().any(|word| says(text, word)));
    exit_now(if memory { exit::OUT_OF_MEMORY } else { exit::ABORTED })
}

/// By which V8 and the C++ library tell want of memory from other reasons to end.
pub const MEMORY_WORDS: [&str; 6] =
    ["out of memory", "OOM", "bad_alloc", "invalid size", "size error", "invalid table size"];

/// Fills the buffer from the kernel's generator; false if it could not.
pub fn fill_random(buffer: &mut [u8]) -> bool {
    let mut rest = buffer;
    while !rest.is_empty() {
        // SAFETY: the pointer and the length describe one live, exclusively borrowed slice.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(n) if n > 0 => rest = &mut rest[n..],
            _ => return false,
        }
    }
    true
}

/// The allocator of a worker library: `#[global_allocator] static ALLOCATOR: isolate_engine::Allocator = …`.
///
/// Rust prints when an allocation fails, which a filtered process must not; this one ends it with its reason.
pub struct Allocator;

// SAFETY: every call is passed on to the system's allocator unchanged; a failure ends the process.
unsafe impl std::alloc::GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        // SAFETY: the caller's layout, passed on.
        or_exit(unsafe { std::alloc::System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: std::alloc::Layout) -> *mut u8 {
        // SAFETY: the caller's layout, passed on.
        or_exit(unsafe { std::alloc::System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: std::alloc::Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's block, layout and size, passed on; the block came from the same allocator.
        or_exit(unsafe { std::alloc::System.realloc(block, layout, size) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller's block and layout, passed on; the block came from the same allocator.
        unsafe { std::alloc::System.dealloc(block, layout) }
    }
}

fn or_exit(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        exit_now(exit::OUT_OF_MEMORY);
    }
    block
}

/// Ends the process at once: no destructors, no exit handlers, no flushing.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Makes the library that invokes it start `$main` (`fn() -> i32`) in place of the carrier's own `main`.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        $crate::interpose!();

        mod carrier_entry {
            type Main = unsafe extern "C" fn(
                $crate::libc::c_int,
                *mut *mut $crate::libc::c_char,
                *mut *mut $crate::libc::c_char,
            ) -> $crate::libc::c_int;
            type Hook = *const $crate::libc::c_void;
            type Start = unsafe extern "C" fn(
                Main,
                $crate::libc::c_int,
                *mut *mut $crate::libc::c_char,
                Hook,
                Hook,
                Hook,
                Hook,
            ) -> $crate::libc::c_int;

            extern "C" fn worker_main(
                _argc: $crate::libc::c_int,
                _argv: *mut *mut $crate::libc::c_char,
                _envp: *mut *mut $crate::libc::c_char,
            ) -> $crate::libc::c_int {
                $crate::exit_now($main())
            }

            /// libc's own start routine, called with our `main`.
            ///
            /// # Safety
            /// Called once by the carrier's startup code with libc's documented arguments.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn __libc_start_main(
                _main: Hook,
                argc: $crate::libc::c_int,
                argv: *mut *mut $crate::libc::c_char,
                init: Hook,
                fini: Hook,
                rtld_fini: Hook,
                stack_end: Hook,
            ) -> $crate::libc::c_int {
                // SAFETY: the next definition of this symbol is libc's, which has this signature; its
                // arguments are passed on unchanged but for `main`, which is a function of the right type.
                unsafe {
                    let next = $crate::libc::dlsym($crate::libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
                    if next.is_null() {
                        $crate::exit_now($crate::exit::ABORTED);
                    }
                    let start: Start = std::mem::transmute(next);
                    start(worker_main, argc, argv, init, fini, rtld_fini, stack_end)
                }
            }
        }
    };
}

/// Interposes the libc calls whose stock behaviour is wrong for a forked, filtered V8. Part of [`entry!`]; by itself for a
/// worker that has V8 linked in and a `main` of its own.
#[macro_export]
macro_rules! interpose {
    () => {
        mod interposed {
            /// The carrier's V8 marks its heap MADV_DONTFORK; a forked child must keep the heap.
            ///
            /// # Safety
            /// As `madvise(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn madvise(
                address: *mut $crate::libc::c_void,
                length: usize,
                advice: $crate::libc::c_int,
            ) -> $crate::libc::c_int {
                if advice == $crate::libc::MADV_DONTFORK {
                    return 0;
                }
                // SAFETY: the caller's arguments, passed on.
                unsafe {
                    $crate::libc::syscall($crate::libc::SYS_madvise, address, length, advice as $crate::libc::c_long)
                        as _
                }
            }

            /// See `layout::map`.
            ///
            /// # Safety
            /// As `mmap(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn mmap(
                hint: *mut $crate::libc::c_void,
                length: usize,
                protection: $crate::libc::c_int,
                flags: $crate::libc::c_int,
                fd: $crate::libc::c_int,
                offset: i64,
            ) -> *mut $crate::libc::c_void {
                // SAFETY: the caller's arguments, passed on.
                unsafe { $crate::layout::map(hint, length, protection, flags, fd, offset) }
            }

            /// The same function under its other name.
            ///
            /// # Safety
            /// As `mmap(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn mmap64(
                hint: *mut $crate::libc::c_void,
                length: usize,
                protection: $crate::libc::c_int,
                flags: $crate::libc::c_int,
                fd: $crate::libc::c_int,
                offset: i64,
            ) -> *mut $crate::libc::c_void {
                // SAFETY: the caller's arguments, passed on.
                unsafe { $crate::layout::map(hint, length, protection, flags, fd, offset) }
            }

            /// See `layout::unmap`.
            ///
            /// # Safety
            /// As `munmap(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn munmap(start: *mut $crate::libc::c_void, length: usize) -> $crate::libc::c_int {
                // SAFETY: the caller's arguments, passed on.
                unsafe { $crate::layout::unmap(start, length) }
            }

            /// See `layout::protect`.
            ///
            /// # Safety
            /// As `mprotect(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn mprotect(
                start: *mut $crate::libc::c_void,
                length: usize,
                protection: $crate::libc::c_int,
            ) -> $crate::libc::c_int {
                // SAFETY: the caller's arguments, passed on.
                unsafe { $crate::layout::protect(start, length, protection) }
            }

            /// Standard output and standard error lead nowhere; see `silence`.
            ///
            /// # Safety
            /// As `write(2)`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn write(
                fd: $crate::libc::c_int,
                bytes: *const $crate::libc::c_void,
                length: usize,
            ) -> isize {
                if fd == 1 || fd == 2 {
                    // SAFETY: the caller's buffer, of the length it says.
                    $crate::note_printed(unsafe { std::slice::from_raw_parts(bytes.cast(), length) });
                    return length as isize;
                }
                // SAFETY: the caller's arguments, passed on.
                unsafe {
                    $crate::libc::syscall($crate::libc::SYS_write, fd as $crate::libc::c_long, bytes, length) as isize
                }
            }

            /// An abort would raise a signal, which no filter allows; this keeps the cause readable.
            #[unsafe(no_mangle)]
            pub extern "C" fn abort() -> ! {
                $crate::exit_aborted()
            }
        }
    };
}

#[doc(hidden)]
pub use libc;
