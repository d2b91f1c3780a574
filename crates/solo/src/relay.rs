//! Bytes between the client and the server, as they are. Threads that read and write by turns: whoever is slow holds the
//! other one up, and nothing is kept in between.

use crate::complaint::Complaints;
use crate::voice::Voice;
use install::at_the_end;
use jail::program::Child;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const BUFFER: usize = 64 << 10;
/// Clients may hand us a descriptor that does not wait.
const PAUSE: Duration = Duration::from_millis(2);

/// What ends on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The client says no more.
    ClientDone,
    /// The client does not listen any more.
    ClientGone,
    /// All that the server has written to its stdout is passed on.
    OutputDone,
    /// The same for stderr.
    ErrorsDone,
    /// The server and all that it started are gone.
    ServerEnded,
}

/// Takes the pipes of the server and connects them with this process's own.
pub(crate) fn start(child: &mut Child, voice: &Voice, complaints: &Complaints) -> io::Result<UnboundedReceiver<Event>> {
    let gone = || io::Error::from(ErrorKind::BrokenPipe);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut to, mut from, mut errors) = (stdin.ok_or_else(gone)?, stdout.ok_or_else(gone)?, stderr.ok_or_else(gone)?);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let (sender, receiver) = unbounded_channel();
    let name = |name: &str| thread::Builder::new().name(name.to_owned());

    let tell = sender.clone();
    at_the_end(child, move || told(&tell, Event::ServerEnded))?;
    let tell = sender.clone();
    name("input").spawn(move || {
        // Who does not listen is no reason to miss the client's end.
        let mut listens = true;
        pass(&mut input, |bytes| {
            listens = listens && give(&mut to, bytes).is_ok();
            true
        });
        drop(to);
        told(&tell, Event::ClientDone);
    })?;
    let (tell, heard) = (sender.clone(), complaints.clone());
    name("output").spawn(move || {
        pass(&mut from, |bytes| {
            heard.output(bytes);
            let given = give(&mut output, bytes).is_ok();
            if !given {
                told(&tell, Event::ClientGone);
            }
            given
        });
        told(&tell, Event::OutputDone);
    })?;
    let (voice, heard) = (voice.clone(), complaints.clone());
    name("errors").spawn(move || {
        pass(&mut errors, |bytes| {
            voice.pass(bytes);
            heard.errors(bytes);
            true
        });
        told(&sender, Event::ErrorsDone);
    })?;
    Ok(receiver)
}

fn told(sender: &UnboundedSender<Event>, event: Event) {
    // When nobody wants to know, all is over already.
    let _ = sender.send(event);
}

/// Until the end, or until nobody takes it.
fn pass(from: &mut impl Read, mut to: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) if to(&buffer[..count]) => {}
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(_) => return,
        }
    }
}

fn give(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
