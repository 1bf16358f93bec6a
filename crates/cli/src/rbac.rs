//! `linchpin rbac -f FILE…`: the smallest Roles and bindings for the ServiceAccounts that manifests act as.
//!
//! Compiles each object of ours as the operator would and prints what its plan says it needs: nothing else decides
//! about rights, so what is printed is what is asked for. Needs no cluster; kinds that are not Kubernetes' own are
//! taken from definitions among the manifests, from the cluster of `--kubeconfig` or `--context` if one is given, and
//! else guessed, which the output says.

pub(crate) mod kinds;
mod manifests;
mod roles;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Result, anyhow};
use clap::Args;
use linchpin_doors::{
    AppBundleDoor, CompileInput, Compiled, DependencyGroupDoor, Door, ResourceDependencyDoor,
};
use linchpin_engine::{
    contract::{Actor, Observed, Question, Seen, Want, World},
    plan::Plan,
};

use crate::{live::Connection, operator::block_on};
use kinds::Kinds;
use manifests::{Manifest, Ours};
use roles::Grants;

/// Kinds that name kinds that name kinds: no plan is deeper than this.
const ROUNDS: usize = 8;

/// Print the smallest Roles and bindings that these manifests need, for kubectl apply -f -.
#[derive(Debug, Args)]
pub(crate) struct RbacCommand {
    /// A file with manifests, or - for standard input; may be repeated.
    #[arg(short, long = "filename", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// The ServiceAccount of objects that name none, as the operator was told.
    #[arg(long, value_name = "NAME", default_value = "default")]
    default_service_account: String,
    #[command(flatten)]
    connection: Connection,
}

/// Prints them.
pub(crate) fn run(command: &RbacCommand) -> Result<ExitCode> {
    let manifests = manifests::read(&command.files, &command.namespace)?;
    let mut kinds = Kinds::new(&manifests.definitions);
    let asked = command.connection.kubeconfig.is_some() || command.connection.context.is_some();
    if asked {
        block_on(async {
            let (client, _) = command.connection.open().await?;
            kinds.discover(client).await
        })??;
    }
    let mut grants = Grants::default();
    for manifest in &manifests.ours {
        let plan = match &manifest.object {
            Ours::Dependency(object) => {
                compiled::<ResourceDependencyDoor>(command, manifest, object, &mut kinds)
            }
            Ours::Group(object) => compiled::<DependencyGroupDoor>(command, manifest, object, &mut kinds),
            Ours::Bundle(object) => compiled::<AppBundleDoor>(command, manifest, object, &mut kinds),
        }?;
        collect(&plan, &mut grants);
    }
    print!("{}", grants.yaml(&kinds.notes(asked)));
    Ok(ExitCode::SUCCESS)
}

/// Compiles an object, answering the questions that come up until none is new.
fn compiled<D: Door>(
    command: &RbacCommand,
    manifest: &Manifest,
    object: &D::Object,
    kinds: &mut Kinds,
) -> Result<Plan> {
    let mut facts = World::new();
    let pins = BTreeMap::new();
    let mut last: Option<Compiled> = None;
    for _ in 0..ROUNDS {
        let given = CompileInput {
            facts: &facts,
            kinds: &pins,
            default_service_account: &command.default_service_account,
        };
        let asks = match D::compile(object, &given) {
            Ok(done) => last.insert(done).wants.clone(),
            Err(error) if error.unready => error.asks,
            Err(error) => return Err(anyhow!("{manifest}: {error}")),
        };
        let open: Vec<Want> = asks.into_iter().filter(|want| facts.get(want).is_none()).collect();
        if open.is_empty() {
            break;
        }
        for want in open {
            let answer = answer(&want, kinds);
            facts.insert(want, answer);
        }
    }
    last.map(|compiled| compiled.plan).ok_or_else(|| anyhow!("{manifest}: it cannot be compiled"))
}

fn answer(want: &Want, kinds: &mut Kinds) -> Seen {
    match want.question() {
        Question::Kind { via, word } => Seen::Kind(Arc::new(kinds.answer(word, via.cluster.is_here()))),
        // Profiles of the cluster: they change verdicts, never rights.
        _ => Seen::Objects(Arc::new(Observed::default())),
    }
}

/// What a plan needs: in this cluster as rules, in others as words.
fn collect(plan: &Plan, grants: &mut Grants) {
    for (via, right, _) in plan.rights() {
        let Actor::ServiceAccount { namespace, name } = &via.actor else { continue };
        let account = (namespace.clone(), name.clone());
        grants.used_by(&account, &plan.owner);
        if via.cluster.is_here() {
            grants.add(&account, &right);
        } else {
            grants.add_elsewhere(&account, &via.cluster.to_string(), &right);
        }
    }
    for open in plan.open_rights() {
        grants.note(Some(open));
    }
}
