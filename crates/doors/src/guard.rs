//! Conditions on actions.

use std::{collections::BTreeSet, sync::Arc};

use linchpin_api::action::{Guard as Entry, GuardType};
use linchpin_engine::{
    contract::ReadSet,
    plan::{ActionGuard, GuardSubject, Readings, SpecError},
    readiness::Wanted,
};
use linchpin_lang::{
    cel::Expression,
    template::{DataPath, StaticReads},
};

use linchpin_words::similar;

use crate::{
    assemble::Keys,
    dependency::DependencyDraft,
    errors::{at, expression},
};

/// A condition as the engine asks it. What it looks at is added to the dependency, and to what the action reads.
pub(crate) fn compile(
    entry: &Entry,
    field: &str,
    part: Option<&str>,
    dependencies: &mut [DependencyDraft],
    keys: &Keys,
    readings: &mut Readings,
) -> Result<ActionGuard, SpecError> {
    let subject = match (entry.kind, &entry.dependency, &entry.expression) {
        (None | Some(GuardType::Dependency), Some(word), None) => {
            let found = find(word, part, dependencies, &format!("{field}.dependency"))?;
            let draft = &mut dependencies[found].requirement;
            let state = entry.state.as_deref().map_or_else(|| draft.wanted.clone(), Wanted::parse);
            draft.look_for(&state);
            if let Some(read) = &mut readings.dependencies {
                read.entry(draft.id.clone()).or_insert_with(ReadSet::nothing);
            }
            GuardSubject::Dependency { step: draft.id.clone(), state }
        }
        (None | Some(GuardType::Cel), None, Some(source)) => {
            let field = format!("{field}.expression");
            let cel = Expression::compile(&field, source, &["dependencies", "values"])
                .map_err(|error| expression(&error))?;
            let reads = as_template_reads(&cel);
            keys.check(&reads, &field)?;
            readings.add(&reads, keys.roots(), keys.steps());
            GuardSubject::Expression(Arc::new(cel))
        }
        _ => {
            let problem = "give dependency for type dependency, or expression for type cel";
            return Err(at(field, problem));
        }
    };
    Ok(ActionGuard { subject, negate: entry.negate })
}

/// What an expression reads, in the words of templates.
fn as_template_reads(cel: &Expression) -> StaticReads {
    let mut paths = BTreeSet::new();
    for (variable, root) in [("dependencies", "Dependencies"), ("values", "Values")] {
        let Some(reads) = cel.reads().get(variable) else {
            continue;
        };
        if reads.whole {
            paths.insert(DataPath::new([root]));
        }
        for path in &reads.paths {
            paths.insert(DataPath::new(std::iter::once(root.to_owned()).chain(path.iter().cloned())));
        }
    }
    StaticReads { paths, dynamic: false }
}

/// The dependency that a word means: a name, else a resource as written; of the same group first.
fn find(
    word: &str,
    part: Option<&str>,
    dependencies: &[DependencyDraft],
    field: &str,
) -> Result<usize, SpecError> {
    let own = |draft: &DependencyDraft| draft.requirement.part.as_deref() == part;
    let called: [&dyn Fn(&DependencyDraft) -> bool; 4] = [
        &|draft| own(draft) && draft.name.as_deref() == Some(word),
        &|draft| own(draft) && draft.resource == word,
        &|draft| draft.requirement.id.as_str() == word || draft.name.as_deref() == Some(word),
        &|draft| draft.resource == word,
    ];
    for is_called in called {
        let found: Vec<usize> =
            (0..dependencies.len()).filter(|index| is_called(&dependencies[*index])).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            several => {
                let fields: Vec<&str> =
                    several.iter().map(|index| dependencies[*index].requirement.field.as_str()).collect();
                let problem =
                    format!("{word:?} is the dependency of each of {}; give them names", fields.join(", "));
                return Err(at(field, problem));
            }
        }
    }
    let known: Vec<String> =
        dependencies.iter().take(10).map(|draft| format!("{:?}", draft.requirement.id.as_str())).collect();
    let known = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    };
    let words =
        dependencies.iter().flat_map(|draft| [Some(draft.requirement.id.as_str()), draft.name.as_deref()]);
    let meant = similar::did_you_mean(word, words.flatten());
    Err(at(field, format!("there is no dependency {word:?}; {known}{meant}")))
}
