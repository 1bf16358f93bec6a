//! `linchpin completion` and `linchpin man`: made from the command line itself; also what kubectl asks its plugins for.

use std::{fs, path::PathBuf, process::ExitCode};

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
    print!("{}", String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Print what may come next on the command line, for `kubectl_complete-linchpin`.
#[derive(Debug, Args)]
pub(crate) struct CompleteCommand {
    /// What is written so far, after `--`; the last one is to be completed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<String>,
}

/// Prints what may come next, one a line, and the number by which kubectl offers no files instead.
pub(crate) fn complete(command: &CompleteCommand, mut program: Command) -> ExitCode {
    // Flags that all commands share are known to each only then.
    program.build();
    let mut lines = next(&program, &command.words);
    lines.push(":4\n".to_owned());
    print!("{}", lines.concat());
    ExitCode::SUCCESS
}

/// What may be in the place of the last word: commands, flags, or the values of the flag before it.
fn next(program: &Command, words: &[String]) -> Vec<String> {
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (last.as_str(), before));
    let mut command = program;
    for word in before {
        command = command.get_subcommands().find(|one| one.get_name() == word).unwrap_or(command);
    }
    let line = |name: &str, about: Option<String>| {
        about.map_or_else(|| format!("{name}\n"), |about| format!("{name}\t{about}\n"))
    };
    let about = |text: Option<&clap::builder::StyledStr>| {
        text.and_then(|text| text.to_string().lines().next().map(str::to_owned))
    };
    let flag = before.last().and_then(|word| word.strip_prefix('-'));
    let of_flag = command.get_arguments().find(|argument| {
        let long = argument.get_long().map(|long| format!("-{long}"));
        let names = [long, argument.get_short().map(String::from)];
        flag.is_some_and(|flag| names.iter().flatten().any(|name| name == flag))
            && argument.get_action().takes_values()
    });
    let mut found = Vec::new();
    if let Some(argument) = of_flag {
        found.extend(argument.get_possible_values().iter().map(|value| line(value.get_name(), None)));
    } else if last.starts_with('-') {
        let flags = command.get_arguments().filter(|argument| !argument.is_hide_set());
        found.extend(flags.filter_map(|argument| {
            Some(line(&format!("--{}", argument.get_long()?), about(argument.get_help())))
        }));
    } else {
        let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
        found.extend(commands.map(|one| line(one.get_name(), about(one.get_about()))));
        let values = command.get_positionals().flat_map(clap::Arg::get_possible_values);
        found.extend(values.map(|value| line(value.get_name(), None)));
    }
    found.retain(|line| line.starts_with(last));
    found
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
            print!("{}", String::from_utf8_lossy(&page));
        }
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
            clap_mangen::generate_to(program, dir)
                .with_context(|| format!("writing the manual pages into {}", dir.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn completed(words: &[&str]) -> Vec<String> {
        let tree = Command::new("tree")
            .about("Draw")
            .arg(Arg::new("output").short('o').long("output").value_parser(["text", "json"]))
            .arg(Arg::new("unmet").long("unmet").action(ArgAction::SetTrue));
        let shell = Command::new("completion").arg(Arg::new("shell").value_parser(["bash", "zsh"]));
        let hidden = Command::new("__complete").hide(true);
        let program = Command::new("linchpin").subcommands([tree, shell, hidden]);
        next(&program, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn kubectl_is_offered_commands_flags_and_values_and_nothing_hidden() {
        assert_eq!(completed(&[""]), ["tree\tDraw\n", "completion\n"]);
        assert_eq!(completed(&["tr"]), ["tree\tDraw\n"]);
        assert_eq!(completed(&["tree", "--u"]), ["--unmet\n"]);
        assert_eq!(completed(&["tree", "--output", ""]), ["text\n", "json\n"]);
        assert_eq!(completed(&["tree", "-o", "j"]), ["json\n"]);
        assert_eq!(completed(&["completion", "z"]), ["zsh\n"]);
        assert_eq!(completed(&["tree", "rd/web", "x"]), [] as [&str; 0]);
    }
}
