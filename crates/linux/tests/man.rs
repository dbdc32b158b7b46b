// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages in man/ are those of the commands as they are.
use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;
use weir_linux::commands::Cli;

/// With this set, the pages are written in place of being compared.
const RENEW: &str = "WEIR_RENEW";

fn is_up_to_date(command: clap::Command) {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let file = format!("{name}.8");
    let mut page = b".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n".to_vec();
    Man::new(command).section("8").render(&mut page).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("man")
        .join(&file);
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(
        found == page,
        "man/{file} is not what the commands say: {RENEW}=1 cargo test -p weir-linux --test man"
    );
}

#[test]
fn the_pages_are_up_to_date() {
    let mut command = Cli::command();
    command.build();
    for subcommand in command.get_subcommands() {
        is_up_to_date(subcommand.clone());
    }
    is_up_to_date(command);
}
