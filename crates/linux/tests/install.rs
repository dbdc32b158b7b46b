// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests `weir linux install` and `uninstall` from end to end, below temporary folders.
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use weir_linux::install::{InstallPaths, UNIT};

use crate::turn;

const SYSTEM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/linux-node/system.toml"
);

fn weir(command: &str, prefix: &Path, more: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir-linux"));
    let weir = weir.args([command, "--prefix"]).arg(prefix).args(more);
    weir.output().unwrap()
}

/// Checks the exit code of a command. Returns what it printed, with line breaks replaced by spaces.
fn printed(output: &Output, code: i32) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8(text).unwrap().replace('│', " ");
    assert_eq!(output.status.code(), Some(code), "{text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A file with its content and mode, or `None` for a folder.
type TreeEntry = Option<(Vec<u8>, u32)>;

/// Everything below `folder`: files with their content and mode, and folders.
fn tree(folder: &Path) -> Vec<(PathBuf, TreeEntry)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(tree(&path));
            all.push((path, None));
        } else {
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
            // The target of a link may be missing.
            let content = fs::read(&path).unwrap_or_default();
            all.push((path, Some((content, mode))));
        }
    }
    all.sort();
    all
}

fn prefix() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // A temporary folder may have a name that is not allowed in a unit.
    let prefix = folder.path().join("opt");
    fs::create_dir(&prefix).unwrap();
    (folder, prefix)
}

#[test]
fn what_is_installed_works_and_goes_again() {
    let (_folder, prefix) = prefix();
    let theirs = prefix.join("share/man/man8/theirs.8");
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, "theirs").unwrap();
    let before = tree(&prefix);
    let arguments = ["--config", SYSTEM];
    let text = printed(&weir("install", &prefix, &arguments), 0);
    for part in [
        "bin/weir-linux",
        "man8/weir-linux-run.8",
        "etc/weir/system.toml",
        "systemctl link",
        "systemctl enable --now weir-linux@system",
        "The unit cannot see",
    ] {
        let is_there = text.contains(part);
        // Where temporary folders are elsewhere, the unit does not hide them.
        let is_unseen = ["tmp", "var/tmp"]
            .iter()
            .any(|of| prefix.starts_with(Path::new("/").join(of)));
        assert!(
            is_there || part.contains("cannot see") && !is_unseen,
            "{text}"
        );
    }
    let installed = tree(&prefix);
    assert_eq!(
        fs::read(prefix.join("etc/weir/system.toml")).unwrap(),
        fs::read(SYSTEM).unwrap()
    );
    let program = prefix.join("bin/weir-linux");
    let version = Command::new(&program).arg("--version").output().unwrap();
    assert!(version.status.success());
    // Installing twice gives the same result, even if the installed copy does it.
    printed(&weir("install", &prefix, &arguments), 0);
    assert_eq!(tree(&prefix), installed);
    let mut again = Command::new(&program);
    again.arg("install").arg("--prefix").arg(&prefix);
    printed(&again.output().unwrap(), 0);
    assert_eq!(tree(&prefix), installed);
    verify(&prefix);
    pages(&prefix.join("share/man/man8"));
    let text = printed(&weir("uninstall", &prefix, &[]), 0);
    assert!(text.contains("removed"), "{text}");
    assert_eq!(tree(&prefix), before);
    let text = printed(&weir("uninstall", &prefix, &[]), 0);
    assert!(text.contains("nothing is installed there"), "{text}");
}

/// Checks that the programs and files in the unit exist, and that systemd accepts the unit.
fn verify(prefix: &Path) {
    let unit = prefix.join("lib/systemd/system/weir-linux@.service");
    let text = fs::read_to_string(&unit).unwrap();
    for line in text.lines().filter(|line| line.starts_with("ExecSt")) {
        let (_, command) = line.split_once('=').unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(Path::new(words[0]), prefix.join("bin/weir-linux"));
        let file = words[2].replace("%i", "system");
        assert!(Path::new(&file).exists(), "{file}");
    }
    let instance = prefix.join("weir-linux@system.service");
    fs::copy(&unit, &instance).unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&instance)
        .output();
    fs::remove_file(&instance).unwrap();
    // Where systemd is missing, the unit is not checked.
    if let Ok(verified) = verified {
        let text = printed(&verified, 0);
        assert!(!text.contains("weir-linux"), "{text}");
    }
}

/// Checks that the manual has a page for each command, and that man can show it.
fn pages(folder: &Path) {
    let main = fs::read_to_string(folder.join("weir-linux.8")).unwrap();
    let commands = main.lines().filter_map(|line| line.strip_suffix("(8)"));
    let names: Vec<String> = commands.map(|name| name.replace('\\', "")).collect();
    assert!(
        names.contains(&"weir-linux-uninstall".to_owned()),
        "{names:?}"
    );
    for name in names.iter().map(String::as_str).chain(["weir-linux"]) {
        let page = folder.join(format!("{name}.8"));
        assert!(page.exists(), "{name}");
        let mut man = Command::new("man");
        let shown = man.args(["--warnings", "-l"]).arg(&page).output();
        if let Ok(shown) = shown.as_ref().map(|shown| printed(shown, 0)) {
            // On some machines the program `man` only says that it is not installed.
            let is_man = shown.contains("NAME");
            assert!(!is_man || shown.contains(name), "{shown}");
            assert!(!shown.contains("warning"), "{shown}");
        }
    }
}

#[test]
fn nothing_of_a_stranger_is_overwritten_and_nothing_is_put_then() {
    for file in [
        "bin/weir-linux",
        "lib/systemd/system/weir-linux@.service",
        "share/man/man8/weir-linux-stop.8",
        "share/weir-linux/installed.json",
        "etc/weir/system.toml",
    ] {
        let (_folder, prefix) = prefix();
        let theirs = prefix.join(file);
        fs::create_dir_all(theirs.parent().unwrap()).unwrap();
        fs::write(&theirs, "{}").unwrap();
        let before = tree(&prefix);
        let refused = weir("install", &prefix, &["--config", SYSTEM]);
        let text = printed(&refused, 2);
        assert!(text.contains("cannot"), "{text}");
        assert_eq!(tree(&prefix), before, "{file}");
        if !file.ends_with(".json") {
            printed(
                &weir("install", &prefix, &["--config", SYSTEM, "--force"]),
                0,
            );
            assert_ne!(fs::read(&theirs).unwrap(), b"{}");
        }
    }
}

#[test]
fn what_the_user_has_edited_stays_and_is_named() {
    let (_folder, prefix) = prefix();
    printed(&weir("install", &prefix, &["--config", SYSTEM]), 0);
    let file = prefix.join("etc/weir/system.toml");
    let edited = fs::read_to_string(&file).unwrap() + "# of great value\n";
    fs::write(&file, &edited).unwrap();
    let text = printed(&weir("install", &prefix, &["--config", SYSTEM]), 2);
    assert!(text.contains("it is there already"), "{text}");
    // A system file that is already at its place is left as it is.
    let own = ["--config", file.to_str().unwrap()];
    printed(&weir("install", &prefix, &own), 0);
    let text = printed(&weir("uninstall", &prefix, &[]), 1);
    assert!(
        text.contains("etc/weir/system.toml: it was edited"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), edited);
    let left = tree(&prefix);
    let files: Vec<_> = left.iter().filter(|(_, file)| file.is_some()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn a_package_is_staged_and_a_unit_in_use_is_not_removed() {
    let (folder, stage) = prefix();
    let stage_of = stage.to_str().unwrap();
    let default = Path::new("/usr/local");
    printed(&weir("install", default, &["--destdir", stage_of]), 0);
    let unit = "usr/local/lib/systemd/system/weir-linux@.service";
    assert_eq!(fs::read_to_string(stage.join(unit)).unwrap(), UNIT);
    assert!(stage.join("etc/weir").is_dir());
    let wants = stage.join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    let link = wants.join("weir-linux@plant.service");
    symlink(Path::new("/").join(unit), &link).unwrap();
    let before = tree(folder.path());
    let text = printed(&weir("uninstall", default, &["--destdir", stage_of]), 2);
    let first = "systemctl disable --now weir-linux@plant.service";
    assert!(text.contains(first), "{text}");
    assert_eq!(tree(folder.path()), before);
    fs::remove_file(link).unwrap();
    printed(&weir("uninstall", default, &["--destdir", stage_of]), 0);
    assert!(!stage.join("usr").exists());
}

#[test]
fn bad_input_is_answered_and_puts_nothing() {
    let (folder, prefix) = prefix();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let spaced = file("my plant.toml", &fs::read(SYSTEM).unwrap());
    let broken = file("broken.toml", b"name = ");
    for (config, part) in [
        (spaced.as_str(), "cannot be named after"),
        (&broken, "broken.toml"),
        ("/no/such.toml", "no/such.toml"),
    ] {
        let text = printed(&weir("install", &prefix, &["--config", config]), 2);
        assert!(text.contains(part), "{text}");
        assert!(tree(&prefix).is_empty());
    }
    for name in ["my weir", "100%", "a/../b", "a\"b", "a$b"] {
        let text = printed(&weir("install", &prefix.join(name), &[]), 2);
        assert!(text.contains("a systemd unit cannot name it"), "{text}");
    }
    assert!(tree(&prefix).is_empty());
    let list = prefix.join("share/weir-linux/installed.json");
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(&list, "{\"written_by\": \"weir\"").unwrap();
    for command in ["install", "uninstall"] {
        let text = printed(&weir(command, &prefix, &[]), 2);
        assert!(text.contains("the list of what was installed"), "{text}");
    }
}

#[test]
fn who_may_not_write_there_is_told_who_may() {
    if !turn::is_own(&[]) {
        return;
    }
    let (folder, prefix) = prefix();
    let everybody = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let program = folder.path().join("weir-linux");
    fs::copy(env!("CARGO_BIN_EXE_weir-linux"), &program).unwrap();
    everybody(folder.path());
    everybody(&program);
    let mut plain = Command::new("setpriv");
    if nix::unistd::geteuid().is_root() {
        plain.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    } else {
        fs::set_permissions(&prefix, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let refused = plain.arg(&program).args(["install", "--prefix"]);
    let text = printed(&refused.arg(&prefix).output().unwrap(), 2);
    assert!(text.contains("run it as root, or name a folder"), "{text}");
    assert!(tree(&prefix).is_empty());
}

#[test]
fn the_unit_of_the_tree_is_that_of_the_default_prefix() {
    let text = InstallPaths::new(Path::new("/usr/local"), None)
        .unwrap()
        .unit_text();
    assert_eq!(text, UNIT);
    let text = InstallPaths::new(Path::new("/opt/weir"), None)
        .unwrap()
        .unit_text();
    let of_weir = |line: &&str| line.starts_with("Exec") && line.contains("weir");
    for line in text.lines().filter(of_weir) {
        assert!(line.contains("=/opt/weir/bin/weir-linux "), "{line}");
        assert!(line.contains(" /opt/weir/etc/weir/%i.toml"), "{line}");
    }
}
