//! The commands of `linchpin`, one variant each; what a command does is in the module of its name.
//!
//! Exit codes: 0 done, 1 failed, 2 the command line makes no sense. Either failure is one line on standard error.

use std::{env, path::Path, process::ExitCode, sync::LazyLock};

use anyhow::Result;
use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use linchpin_doors::Registry;
use linchpin_words::text::line_of;

use crate::{
    check, completion, consist, crds, examples, explain, manifests, operator,
    orders::{self, ManualOrder, OrderCommand, ProceedCommand, RerunCommand, RollbackCommand},
    output::{self, Color},
    plan, rbac, tree, version,
};
#[cfg(feature = "local")]
use crate::{demo, local};

/// The exit code for a command line that makes no sense.
const USAGE: u8 = 2;

/// Holds every change until what it depends on is really there.
#[derive(Debug, Parser)]
#[command(name = "linchpin", version, after_help = examples::PROGRAM)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Whether text is coloured; auto: on a terminal, unless the environment says otherwise.
    #[arg(long, value_enum, default_value = "auto", global = true)]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(after_help = examples::OPERATOR)]
    Operator(Box<operator::OperatorCommand>),
    /// Print the custom resource definitions as YAML.
    #[command(after_help = examples::CRDS)]
    Crds,
    #[command(after_help = examples::MANIFESTS)]
    Manifests(manifests::ManifestsCommand),
    #[command(after_help = examples::CHECK)]
    Check(check::CheckCommand),
    #[command(after_help = examples::TREE)]
    Tree(Box<tree::TreeCommand>),
    #[command(after_help = examples::GRAPH)]
    Graph(Box<tree::GraphCommand>),
    #[command(after_help = examples::EXPLAIN)]
    Explain(explain::ExplainCommand),
    #[command(after_help = examples::RBAC)]
    Rbac(Box<rbac::RbacCommand>),
    #[command(after_help = examples::CONSIST)]
    Consist(consist::ConsistCommand),
    #[command(after_help = examples::PLAN)]
    Plan(plan::PlanCommand),
    #[command(after_help = examples::RERUN)]
    Rerun(RerunCommand),
    #[command(after_help = examples::PROCEED)]
    Proceed(ProceedCommand),
    /// Ask for an immediate fresh look at an object; an object that recovers by hand begins again.
    #[command(after_help = examples::REFRESH)]
    Refresh(OrderCommand),
    /// Hold an object: nothing starts and no clock runs.
    #[command(after_help = examples::SUSPEND)]
    Suspend(OrderCommand),
    /// Let a suspended object go on.
    #[command(after_help = examples::RESUME)]
    Resume(OrderCommand),
    #[command(after_help = examples::ROLLBACK)]
    Rollback(RollbackCommand),
    #[cfg(feature = "local")]
    #[command(after_help = examples::LOCAL)]
    Local(local::LocalCommand),
    /// Start a local Kubernetes with the operator and watch a shop open, one dependency after another.
    #[cfg(feature = "local")]
    #[command(after_help = examples::DEMO)]
    Demo,
    #[command(after_help = examples::COMPLETION)]
    Completion(completion::CompletionCommand),
    #[command(after_help = examples::MAN)]
    Man(completion::ManCommand),
    #[command(name = "__complete", hide = true)]
    Complete(completion::CompleteCommand),
    /// Print the version.
    #[command(after_help = examples::VERSION)]
    Version,
}

/// What the program is called in help and errors: as a plugin of kubectl it is `kubectl linchpin`.
static PROGRAM: LazyLock<&str> = LazyLock::new(|| {
    let called = env::args_os().next().unwrap_or_default();
    called_as(Path::new(&called))
});

fn called_as(program: &Path) -> &'static str {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    if stem.starts_with("kubectl-") { "kubectl linchpin" } else { "linchpin" }
}

/// The commands that the command line names: `rbac`, `local load`.
static ASKED: LazyLock<String> = LazyLock::new(|| {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    named(&Cli::command(), &words)
});

fn named(program: &clap::Command, words: &[String]) -> String {
    let mut found = Vec::new();
    let mut command = program;
    for word in words {
        let Some(inner) = command.find_subcommand(word) else { break };
        found.push(inner.get_name());
        command = inner;
    }
    found.join(" ")
}

/// A failure in one line, as `<what>: <why>`: what is the command where the reason does not say it itself. Nothing in
/// it changes how a terminal reads the rest.
pub(crate) fn failure_line(why: &str) -> String {
    failure_line_of(&ASKED, why)
}

fn failure_line_of(command: &str, why: &str) -> String {
    if why.contains(": ") { line_of(why, usize::MAX) } else { usage_line_of(command, why) }
}

/// The same of a command line that makes no sense: what is always the command.
fn usage_line_of(command: &str, why: &str) -> String {
    let what = if command.is_empty() { "command line" } else { command };
    format!("{what}: {}", line_of(why, usize::MAX))
}

/// What the program is called here.
pub(crate) fn program() -> &'static str {
    *PROGRAM
}

/// The whole command line.
fn command_line() -> clap::Command {
    Cli::command().bin_name(program())
}

/// A command line that parses but cannot be meant.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

/// Parses the command line and does what it says, for these kinds.
pub(crate) fn run(kinds: &Registry) -> Result<ExitCode> {
    let parsed = command_line().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let Cli { command, color } = match parsed {
        Ok(cli) => cli,
        Err(error) => return Ok(not_understood(&error)),
    };
    match command {
        Command::Operator(command) => match operator::settings(*command) {
            Ok(settings) => operator::run(settings, kinds),
            Err(UsageError(reason)) => Ok(refuse(&reason)),
        },
        Command::Crds => crds::run(kinds),
        Command::Manifests(command) => manifests::run(&command, kinds),
        Command::Check(command) => check::run(&command, kinds),
        Command::Tree(command) => draw(&command, color, kinds),
        Command::Graph(command) => draw(&(*command).into(), color, kinds),
        Command::Explain(command) => match explain::reference(&command) {
            Ok(reference) => explain::run(&command, &reference, kinds),
            Err(UsageError(reason)) => Ok(refuse(&reason)),
        },
        Command::Plan(command) => plan::run(&command),
        Command::Rbac(command) => match rbac::run(&command, kinds)? {
            Ok(code) => Ok(code),
            Err(UsageError(reason)) => Ok(refuse(&reason)),
        },
        Command::Consist(command) => match consist::run(command)? {
            Ok(code) => Ok(code),
            Err(UsageError(reason)) => Ok(refuse(&reason)),
        },
        Command::Rerun(command) => give(&ManualOrder::Rerun(&command), kinds),
        Command::Proceed(command) => give(&ManualOrder::Proceed(&command), kinds),
        Command::Refresh(command) => give(&ManualOrder::Refresh(&command), kinds),
        Command::Suspend(command) => give(&ManualOrder::Suspend(&command), kinds),
        Command::Resume(command) => give(&ManualOrder::Resume(&command), kinds),
        Command::Rollback(command) => give(&ManualOrder::Rollback(&command), kinds),
        #[cfg(feature = "local")]
        Command::Local(command) => local::run(command),
        #[cfg(feature = "local")]
        Command::Demo => demo::run(kinds),
        Command::Completion(command) => Ok(completion::run(&command, command_line())),
        Command::Complete(command) => Ok(completion::complete(&command, command_line())),
        Command::Man(command) => completion::man(&command, Cli::command()),
        Command::Version => {
            version::run();
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Draws what waits for what.
fn draw(command: &tree::TreeCommand, color: Color, kinds: &Registry) -> Result<ExitCode> {
    match tree::references(command) {
        Ok(asked) => tree::run(command, &asked, color, kinds),
        Err(UsageError(reason)) => Ok(refuse(&reason)),
    }
}

/// Gives an order to an object.
fn give(order: &ManualOrder<'_>, kinds: &Registry) -> Result<ExitCode> {
    match order.object(kinds) {
        Ok((asked, kind)) => orders::run(order, &asked, &kind),
        Err(UsageError(reason)) => Ok(refuse(&reason)),
    }
}

/// Help and version are answers and printed as they are; a mistake is reported in one line, also below a help that was not
/// asked for.
fn not_understood(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            refuse("no command was given")
        }
        _ => refuse(&in_one_line(error)),
    }
}

fn refuse(reason: &str) -> ExitCode {
    let words: Vec<&str> =
        [program(), ASKED.as_str(), "--help"].into_iter().filter(|word| !word.is_empty()).collect();
    output::note_of_program(&format!("{} (see {})", usage_line_of(&ASKED, reason), words.join(" ")));
    ExitCode::from(USAGE)
}

/// What is wrong, and the word that was probably meant.
fn in_one_line(error: &clap::Error) -> String {
    let problem = first_paragraph(&error.to_string());
    let meant = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let meant = meant.iter().find_map(|kind| match error.get(*kind) {
        Some(ContextValue::String(one)) => Some(one),
        // The likeliest comes last. What is not shown in help is nothing that a person means.
        Some(ContextValue::Strings(several)) => several.iter().rfind(|one| !one.starts_with("__")),
        _ => None,
    });
    meant.map_or(problem.clone(), |meant| format!("{problem}; did you mean {meant}?"))
}

/// clap's messages go on with usage and hints after an empty line.
fn first_paragraph(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_command_shows_how_it_is_used() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(help.starts_with("Examples:\n"), "{name} has no examples");
            assert!(help.contains(&format!("linchpin {name}")), "{name}: {help}");
        }
    }

    #[test]
    fn every_example_is_understood() {
        let all: Vec<String> = Cli::command()
            .get_subcommands()
            .filter_map(|command| Some(command.get_after_help()?.to_string()))
            .chain([examples::PROGRAM.to_owned()])
            .collect();
        let mut tried = 0;
        for line in all.iter().flat_map(|text| text.lines()) {
            let Some(start) = line.find("linchpin ") else { continue };
            // What follows is for the shell, or is said about the command.
            let command = line[start..].split(['|', '>', ')']).next().unwrap_or_default();
            let command = command.split("  ").next().unwrap_or_default();
            let parsed = Cli::try_parse_from(command.split_whitespace());
            assert!(
                parsed.is_ok(),
                "{line}: {}",
                parsed.err().map(|error| error.to_string()).unwrap_or_default()
            );
            tried += 1;
        }
        assert!(tried > 20, "the examples are not read any more: {tried}");
    }

    /// The help of every command, one after another.
    fn page() -> String {
        let mut out = String::new();
        let mut program = Cli::command().disable_help_subcommand(true);
        // What every command takes is only then among what one takes.
        program.build();
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let mut command =
                command.clone().bin_name(format!("linchpin {}", command.get_name())).term_width(100);
            let help = command.render_long_help().to_string();
            let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
            let name = command.get_name();
            let _ = write!(out, "\n### linchpin {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
        }
        out
    }

    #[test]
    fn every_flag_is_documented_as_help_shows_it() {
        const MARK: &str = "<!-- From here on written by `make docs` from the program's own help. -->\n";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        let text = std::fs::read_to_string(&file).unwrap();
        let (by_hand, _) = text.split_once(MARK).unwrap();
        let whole = format!("{by_hand}{MARK}{}", page());
        if env::var_os("LINCHPIN_UPDATE").is_some() {
            std::fs::write(&file, &whole).unwrap();
        }
        assert!(
            std::fs::read_to_string(&file).unwrap() == whole,
            "docs/cli.md is out of date: make docs writes it"
        );
    }

    #[test]
    fn as_a_plugin_it_calls_itself_one() {
        assert_eq!(called_as(Path::new("/usr/bin/kubectl-linchpin")), "kubectl linchpin");
        assert_eq!(called_as(Path::new("linchpin")), "linchpin");
    }

    #[test]
    fn a_failure_says_what_and_why_and_nothing_that_a_terminal_obeys() {
        assert_eq!(
            failure_line_of("tree", "namespace othr does not exist"),
            "tree: namespace othr does not exist"
        );
        assert_eq!(failure_line_of("rbac", "reading x: no such file"), "reading x: no such file");
        assert_eq!(
            failure_line_of("", "unrecognized subcommand 'x'"),
            "command line: unrecognized subcommand 'x'"
        );
        assert_eq!(failure_line_of("check", "a: b\n\u{1b}[31mc"), "a: b\\n\\u{1b}[31mc");
        let value = "invalid value 'x' for '-o' [possible values: text]";
        assert_eq!(usage_line_of("explain", value), format!("explain: {value}"));
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(named(&Cli::command(), &words("local load --help")), "local load");
        assert_eq!(named(&Cli::command(), &words("rbac -f check")), "rbac");
        assert_eq!(named(&Cli::command(), &words("explian rd/a")), "");
    }

    #[test]
    fn every_command_says_whether_it_is_coloured() {
        for line in ["tree", "graph", "explain rd/a", "check", "plan -f a", "version"] {
            let words = ["linchpin"].into_iter().chain(line.split(' ')).chain(["--color", "never"]);
            assert_eq!(Cli::try_parse_from(words).unwrap().color, Color::Never, "{line}");
        }
    }

    #[test]
    fn the_account_of_a_pod_is_no_other_user() {
        for flags in [&["--as", "ann"][..], &["--as", "ann", "--as-group", "a"], &["--request-timeout", "1s"]]
        {
            let line = [&["linchpin", "check", "--in-cluster"], flags].concat();
            let error = Cli::try_parse_from(line).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{flags:?}");
        }
    }

    #[test]
    fn a_mistake_is_told_in_one_line() {
        let error = Cli::try_parse_from(["linchpin", "operator", "--no-such-flag"]).unwrap_err();
        assert_eq!(first_paragraph(&error.to_string()), "unexpected argument '--no-such-flag' found");
        let error = Cli::try_parse_from(["linchpin", "explian"]).unwrap_err();
        assert_eq!(in_one_line(&error), "unrecognized subcommand 'explian'; did you mean explain?");
        for (typed, meant) in [("manifest", "manifests"), ("resum", "resume"), ("completin", "completion")] {
            let error = in_one_line(&Cli::try_parse_from(["linchpin", typed]).unwrap_err());
            assert_eq!(error, format!("unrecognized subcommand '{typed}'; did you mean {meant}?"));
        }
        let error = Cli::try_parse_from(["linchpin", "tree", "--unmeet"]).unwrap_err();
        assert_eq!(in_one_line(&error), "unexpected argument '--unmeet' found; did you mean --unmet?");
        let error = Cli::try_parse_from(["linchpin", "operator", "--concurrency=none"]).unwrap_err();
        assert!(!first_paragraph(&error.to_string()).contains('\n'));
    }
}
