//! What a build leaves behind: nothing. By itself, so that no other test's build is seen.

use build::{Options, build};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    listed.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn no_process_no_mount_no_descriptor_no_file_is_left() {
    let folder = std::env::temp_dir().join(format!("bulkhead-leftovers-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(folder.join("good.ts"), "export default { a: 1 as number };\n").unwrap();
    fs::write(folder.join("bad.ts"), "export default {").unwrap();
    fs::write(folder.join("huge.ts"), "import huge from './huge.txt';\nexport default { huge };\n").unwrap();
    fs::File::create(folder.join("huge.txt")).unwrap().set_len(1 << 40).unwrap();
    let esbuild = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/esbuild/esbuild");
    let options = Options { esbuild: Some(esbuild), wall_clock: Duration::from_secs(30), ..Options::default() };
    let before = (fs::read_to_string("/proc/self/mountinfo").unwrap(), descriptors(), threads());
    for entry in ["good.ts", "bad.ts", "huge.ts"] {
        let built = build(&folder, entry, &options);
        assert_eq!(built.is_ok(), entry == "good.ts", "{built:?}");
        assert_eq!(children(), [""; 0], "{entry}");
    }
    let late = build(&folder, "good.ts", &Options { wall_clock: Duration::ZERO, ..options });
    assert!(matches!(late, Err(build::BuildError::TooLong(_))), "{late:?}");
    assert_eq!(children(), [""; 0]);
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bad.ts", "good.ts", "huge.ts", "huge.txt"]);
    fs::remove_dir_all(&folder).unwrap();
    let after = (fs::read_to_string("/proc/self/mountinfo").unwrap(), descriptors(), threads());
    assert_eq!(after, before);
}
