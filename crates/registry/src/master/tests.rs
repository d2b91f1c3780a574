use super::*;
use std::time::Duration;

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn shell(script: &str) -> Result<MasterKey, MasterKeyError> {
    MasterKey::command(&argv(&["sh", "-c", script]))
}

fn refusal(result: Result<MasterKey, MasterKeyError>) -> String {
    result.err().map_or_else(|| panic!("it is a key"), |error| error.to_string())
}

#[test]
fn every_way_to_write_a_key_is_the_same_key() {
    let bytes: [u8; 32] = std::array::from_fn(|place| place as u8);
    let key = MasterKey::from_bytes(&bytes).unwrap();
    assert_eq!(key.id().len(), 16);
    let texts = [HEX, &HEX.to_uppercase(), BASE64, BASE64.trim_end_matches('=')].map(str::to_owned);
    for text in texts.iter().flat_map(|text| [text.clone(), format!("{text}\n"), format!("{text}\r\n")]) {
        assert_eq!(MasterKey::parse(text.as_bytes()).unwrap().id(), key.id(), "{text:?}");
    }
    let high = [[0xfb; 31].as_slice(), &[0xff]].concat();
    for text in [STANDARD.encode(&high), URL_SAFE.encode(&high), URL_SAFE_NO_PAD.encode(&high)] {
        assert_eq!(MasterKey::parse(text.as_bytes()).unwrap().key.bytes()[..], high, "{text}");
    }
}

#[test]
fn what_is_no_key_is_refused_and_not_repeated() {
    let (short, long) = (&HEX[1..], format!("{HEX}0"));
    let spaced = format!(" {HEX}");
    let two_lines = format!("{HEX}\n\n");
    let short64 = STANDARD.encode([1; 31]);
    let long64 = STANDARD.encode([1; 33]);
    for text in ["", "\n", "password", short, &long, &spaced, &two_lines, &short64, &long64, &"g".repeat(64)] {
        let error = MasterKey::parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, MasterKeyError::Malformed), "{text:?}");
        assert!(error.hint().is_some());
    }
    assert!(matches!(MasterKey::parse("0".repeat(64).as_bytes()), Err(MasterKeyError::NotRandom)));
}

#[test]
fn it_is_never_printed() {
    let key = MasterKey::parse(HEX.as_bytes()).unwrap();
    assert_eq!(format!("{key:?}"), format!("MasterKey({})", key.id()));
    assert!(!HEX.contains(key.id()));
}

#[test]
fn a_file_is_made_once_and_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("master.key");
    assert!(refusal(MasterKey::file(&path)).contains("cannot read"));
    let made = MasterKey::ensure_file(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(MasterKey::ensure_file(&path).unwrap().id(), made.id());
    assert_eq!(MasterKey::file(&path).unwrap().id(), made.id());
    let other = MasterKey::ensure_file(&dir.path().join("other.key")).unwrap();
    assert_ne!(other.id(), made.id());

    for mode in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(MasterKey::file(&path), Err(MasterKeyError::Exposed { .. })), "{mode:o}");
        assert!(MasterKey::ensure_file(&path).is_err(), "{mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(MasterKey::file(&path).is_ok());
}

#[test]
fn what_lies_at_the_path_instead_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(MasterKey::ensure_file(dir.path()), Err(MasterKeyError::NotAFile { .. })));
    assert!(matches!(MasterKey::file(Path::new("/dev/zero")), Err(MasterKeyError::NotAFile { .. })));
    let path = dir.path().join("master.key");
    for content in ["", "hello", &"ab".repeat(1 << 20)] {
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(MasterKey::ensure_file(&path), Err(MasterKeyError::Malformed)));
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_variable_that_is_not_there_is_named() {
    assert!(refusal(MasterKey::environment("BULKHEAD_NO_SUCH_VARIABLE")).contains("`BULKHEAD_NO_SUCH_VARIABLE`"));
    assert!(matches!(MasterKey::environment("PATH"), Err(MasterKeyError::Malformed)));
}

#[test]
fn a_command_prints_it() {
    let key = MasterKey::parse(HEX.as_bytes()).unwrap();
    assert_eq!(MasterKey::command(&argv(&["echo", HEX])).unwrap().id(), key.id());
    assert_eq!(shell(&format!("echo careful >&2; printf %s {BASE64}")).unwrap().id(), key.id());
    let chatty = format!("head -c 1000000 /dev/zero >&2 && echo {HEX}");
    assert_eq!(shell(&chatty).unwrap().id(), key.id(), "what it says besides is not its end");
    assert!(matches!(MasterKey::command(&argv(&["echo", &format!("$(echo {HEX})")])), Err(MasterKeyError::Malformed)));
}

#[test]
fn a_command_that_fails_says_why_without_its_arguments() {
    let error = refusal(shell("echo 'no such vault' >&2; echo more >&2; : a-secret-argument; exit 3"));
    assert!(error.contains("`sh`") && error.contains("exit status: 3: no such vault"), "{error}");
    assert!(!error.contains("more") && !error.contains("a-secret-argument"), "{error}");
    let error = refusal(shell(r"printf '\033[31mred\n' >&2; exit 1"));
    assert!(error.ends_with(": [31mred"), "{error:?}");
    assert!(refusal(shell("printf 'x%.0s' $(seq 5000) >&2; exit 1")).len() < 400);
    assert!(refusal(MasterKey::command(&argv(&["/no/such/program"]))).contains("cannot be run"));
    assert!(matches!(MasterKey::command(&[]), Err(MasterKeyError::NoCommand)));
    assert!(matches!(MasterKey::command(&argv(&["yes"])), Err(MasterKeyError::Malformed)), "it never ends");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pid");
    let error = refusal(shell(&format!("sleep 300 & echo $! > {}; wait", path.display())));
    assert!(error.contains("longer than 10 seconds"), "{error}");
    let pid = fs::read_to_string(&path).unwrap();
    let gone = || fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|text| text.is_empty());
    let ended = || !Path::new(&format!("/proc/{}", pid.trim())).exists() || gone();
    assert!((0..100).any(|_| ended() || {
        std::thread::sleep(Duration::from_millis(50));
        false
    }));
}

#[test]
fn what_a_command_leaves_behind_does_not_keep_us_waiting() {
    assert!(shell(&format!("sleep 300 & echo {HEX}")).is_ok(), "the sleep had the pipe");
}
