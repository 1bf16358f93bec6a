//! `linchpin rbac -f FILE…`: the smallest Roles and bindings for the ServiceAccounts that manifests act as; with
//! `--check`, which of these rights are there; with `--operator`, the operator's own.
//!
//! Compiles each object of ours as the operator would and prints what its plan says it needs: nothing else decides
//! about rights, so what is printed is what is asked for. Needs no cluster; kinds that are not Kubernetes' own are
//! taken from definitions among the manifests, from the cluster of `--kubeconfig` or `--context` if one is given, and
//! else guessed, which the output says.

pub(crate) mod check;
mod consist;
mod facts;
pub(crate) mod kinds;
mod manifests;
mod operator;
mod roles;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use linchpin_doors::{CLUSTER_DOMAIN, CompileInput, Compiled, Registry};
use linchpin_engine::{
    contract::{Actor, Question, Right, Seen, Want, World},
    plan::{Plan, SpecError},
};
use linchpin_lang::template::parse_documents;
use linchpin_words::ObjectRef;
use serde_json::json;

use crate::{asked::namespace, cli::UsageError, files, live::Connection, operator::awaited};
use facts::RbacFacts;
use kinds::KnownKinds;
use manifests::OwnManifest;
use roles::{AccountName, Grants};

/// Kinds that name kinds that name kinds: no plan is deeper than this.
const ROUNDS: usize = 8;

/// Print the smallest Roles and bindings that these manifests need, for kubectl apply -f -.
#[derive(Debug, Args)]
pub(crate) struct RbacCommand {
    /// A file or directory with manifests, or - for standard input; may be repeated, or separated by commas.
    #[arg(short, long = "filename", required_unless_present_any = ["operator", "consist"], num_args = 1..,
          value_delimiter = ',', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the directories below those of -f too.
    #[arg(short = 'R', long, requires = "files")]
    recursive: bool,
    /// The namespace of objects that name none [default: default]; with --operator, that of the operator
    /// [default: linchpin-system].
    #[arg(short, long, value_parser = namespace)]
    namespace: Option<String>,
    /// The ServiceAccount of objects that name none, as the operator is configured.
    #[arg(long, value_name = "NAME", default_value = "default", conflicts_with = "operator")]
    default_service_account: String,
    /// Ask the cluster which of the rights are there; with -o yaml or json, print the Roles for what is missing.
    #[arg(long, conflicts_with = "operator")]
    check: bool,
    /// Print the operator's own ServiceAccount, roles and bindings instead.
    #[arg(long, conflicts_with = "files")]
    operator: bool,
    /// Print the ServiceAccount, roles and bindings of linchpin consist instead.
    #[arg(long, conflicts_with_all = ["files", "operator", "check"])]
    consist: bool,
    #[command(flatten)]
    served: consist::ServedFlags,
    #[command(flatten)]
    installation: operator::InstallationFlags,
    /// How it is printed: yaml; json, a v1 List; text, with --check; helm, with --operator: the chart's template.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
    #[command(flatten)]
    connection: Connection,
}

/// How it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Yaml,
    Json,
    Text,
    Helm,
}

/// A right that an object of ours needs in this cluster.
#[derive(Debug, Clone)]
pub(crate) struct NeededRight {
    account: AccountName,
    right: Right,
    owner: ObjectRef,
}

/// Checks what the parser cannot, and prints.
pub(crate) fn run(command: &RbacCommand, registry: &Registry) -> Result<Result<ExitCode, UsageError>> {
    let formats: &[Output] = match (command.operator, command.check) {
        (true, _) => &[Output::Yaml, Output::Json, Output::Helm],
        (false, true) => &[Output::Text, Output::Yaml, Output::Json],
        (false, false) => &[Output::Yaml, Output::Json],
    };
    let output = command.output.unwrap_or(formats[0]);
    if !formats.contains(&output) {
        let mode = match (command.operator, command.check) {
            (true, _) => "with --operator",
            (false, true) => "with --check",
            (false, false) => "without --check or --operator",
        };
        let word = output.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Ok(Err(UsageError(format!("-o {word} is not for rbac {mode}"))));
    }
    if command.consist {
        return consist::print(&command.served, command.namespace.as_deref(), output == Output::Json);
    }
    if command.operator {
        operator::print(&command.installation, command.namespace.as_deref(), output)?;
        return Ok(Ok(ExitCode::SUCCESS));
    }
    for_manifests(command, output, registry).map(Ok)
}

fn for_manifests(command: &RbacCommand, output: Output, registry: &Registry) -> Result<ExitCode> {
    let namespace = command.namespace.as_deref().unwrap_or("default");
    let texts = files::read(&command.files, command.recursive)?;
    let manifests = manifests::read(&texts, namespace, registry)?;
    let mut kinds = KnownKinds::new(&manifests.definitions, registry);
    let asked =
        command.check || command.connection.kubeconfig.is_some() || command.connection.context.is_some();
    if asked {
        awaited(async {
            let (client, _) = command.connection.open().await?;
            kinds.discover(client).await
        })??;
    }
    let mut grants = Grants::default();
    let mut needs = Vec::new();
    for account in &manifests.accounts {
        grants.is_there(account.clone());
    }
    let facts = RbacFacts::new(&manifests.kept, asked.then_some(&command.connection));
    for manifest in &manifests.ours {
        let found = compiled(command, manifest, &facts, &mut kinds, registry)?;
        collect(&found, &mut kinds, &mut grants, &mut needs);
    }
    if command.check {
        return awaited(check::run(&command.connection, &needs, output, registry))?;
    }
    for need in &needs {
        grants.add(&need.owner, &need.account, &need.right);
    }
    print_roles(&grants.yaml(&kinds.notes(asked), registry), output)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints roles that were written as YAML.
fn print_roles(yaml: &str, output: Output) -> Result<()> {
    if output == Output::Json {
        let documents = parse_documents("the roles", yaml)
            .map_err(|error| anyhow!("the roles cannot be read back: {}", error.message()))?;
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        println!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        print!("{yaml}");
    }
    Ok(())
}

/// What an object needs, as far as that is known.
struct CompiledObject {
    plan: Plan,
    /// What compiling looked at.
    asks: BTreeSet<Want>,
    /// What is missing, for the person who applies the output.
    note: Option<String>,
}

/// Compiles an object, answering the questions that come up until none is new. Where its source is not at hand, all but
/// the rights for what is in there can be listed.
fn compiled(
    command: &RbacCommand,
    manifest: &OwnManifest,
    given: &RbacFacts<'_>,
    kinds: &mut KnownKinds,
    registry: &Registry,
) -> Result<CompiledObject> {
    match attempt(command, manifest, given, kinds, registry)? {
        Ok(Compiled { plan, wants }) => Ok(CompiledObject { plan, asks: wants, note: None }),
        Err(error) => {
            let lacking = || anyhow!("{manifest}: {error}");
            let rest = manifest.without_source().filter(|_| error.waits).ok_or_else(lacking)?;
            let Ok(Compiled { plan, mut wants }) = attempt(command, &rest, given, kinds, registry)? else {
                return Err(lacking());
            };
            wants.extend(error.asks);
            let note = format!(
                "not known: what {} applies, and with it the rights to do so ({}); give its ConfigMap or Secret with -f, \
                 or --kubeconfig or --context to ask a cluster",
                plan.owner, error.message
            );
            Ok(CompiledObject { plan, asks: wants, note: Some(note) })
        }
    }
}

fn attempt(
    command: &RbacCommand,
    manifest: &OwnManifest,
    kept: &RbacFacts<'_>,
    kinds: &mut KnownKinds,
    registry: &Registry,
) -> Result<Result<Compiled, SpecError>> {
    let mut facts = World::new();
    let pins = BTreeMap::new();
    let mut last: Option<Result<Compiled, SpecError>> = None;
    for _ in 0..ROUNDS {
        let given = CompileInput {
            registry,
            facts: &facts,
            kinds: &pins,
            default_service_account: &command.default_service_account,
            cluster_domain: CLUSTER_DOMAIN,
            exempt: &[],
            makers: &[],
        };
        let asks = match manifest.object.compile(&given) {
            Ok(done) => {
                let asks = done.wants.clone();
                last = Some(Ok(done));
                asks
            }
            Err(error) if error.unready => error.asks,
            Err(error) if error.waits => {
                let asks = error.asks.clone();
                last = Some(Err(error));
                asks
            }
            Err(error) => return Err(anyhow!("{manifest}: {error}")),
        };
        let open: Vec<Want> = asks.into_iter().filter(|want| facts.get(want).is_none()).collect();
        if open.is_empty() {
            break;
        }
        for want in open {
            let answer = match want.question() {
                Question::Kind { via, word } => {
                    Seen::Kind(Arc::new(kinds.answer(word, via.cluster.is_here())))
                }
                _ => kept.answer(&want),
            };
            facts.insert(want, answer);
        }
    }
    last.ok_or_else(|| anyhow!("{manifest}: it cannot be compiled"))
}

/// What an object needs: in this cluster as rules, in others as words.
fn collect(
    found: &CompiledObject,
    kinds: &mut KnownKinds,
    grants: &mut Grants,
    needs: &mut Vec<NeededRight>,
) {
    let plan = &found.plan;
    grants.note(found.note.clone());
    let carried_out = plan.rights().into_iter().map(|(via, right, _)| (via, right));
    for (via, right) in facts::reading(&found.asks, kinds).into_iter().chain(carried_out) {
        let Actor::ServiceAccount { namespace, name } = &via.actor else { continue };
        let account = (namespace.clone(), name.clone());
        grants.used_by(&account, &plan.owner);
        if via.cluster.is_here() {
            needs.push(NeededRight { account, right, owner: plan.owner.clone() });
        } else {
            grants.add_elsewhere(&account, &via.cluster.to_string(), &right);
        }
    }
    for open in plan.open_rights() {
        grants.note(Some(open));
    }
}
