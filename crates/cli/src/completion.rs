//! `linchpin completion` and `linchpin man`: made from the command line itself.

use std::{fs, io, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

/// Print a script that completes this program's commands and flags.
#[derive(Debug, Args)]
pub(crate) struct CompletionCommand {
    /// The shell.
    #[arg(value_enum)]
    shell: CompletionShell,
}

/// The shells that kubectl serves too.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

/// Prints the script.
pub(crate) fn run(command: &CompletionCommand, mut program: Command) -> ExitCode {
    let shell = match command.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
        CompletionShell::Powershell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "linchpin", &mut script);
    // A reader that has seen enough is no failure.
    let _ = io::Write::write_all(&mut io::stdout(), &script);
    ExitCode::SUCCESS
}

/// Print the manual page, or write all of them.
#[derive(Debug, Args)]
pub(crate) struct ManCommand {
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints linchpin.1, or writes all pages.
pub(crate) fn man(command: &ManCommand, program: Command) -> Result<ExitCode> {
    match &command.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(program).render(&mut page).context("writing the manual page")?;
            let _ = io::Write::write_all(&mut io::stdout(), &page);
        }
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
            clap_mangen::generate_to(program, dir)
                .with_context(|| format!("writing the manual pages into {}", dir.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
