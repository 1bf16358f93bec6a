//! The reference documentation says what the definitions say.

use std::{env, fmt::Write, fs, path::PathBuf};

use linchpin_words::{ConditionType, Reason, limits};
use serde_json::Value;

/// Where the generated part of the page begins.
const MARK: &str = "<!-- Everything below is generated: make docs writes it. -->\n";

/// How a field's type is told in a table.
fn type_of(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        return words.join(", ");
    }
    if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("ns|us")) {
        return "duration".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") if schema["properties"].is_null() => match &schema["additionalProperties"] {
            Value::Object(_) => "map of strings".to_owned(),
            _ => "any object".to_owned(),
        },
        Some("string") if schema["format"] == "date-time" => "time".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// One line for each field below `schema`.
fn fields(page: &mut String, path: &str, schema: &Value) {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|r| r == name));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let shown = if required(name) { format!("**`{path}`**") } else { format!("`{path}`") };
        let description = field["description"].as_str().unwrap_or_default().replace('|', "\\|");
        writeln!(page, "| {shown} | {} | {description} |", type_of(field)).unwrap();
        // A cluster looks the same wherever it appears; it is described once, in the spec.
        let described_elsewhere = name == "cluster" && path.contains('.');
        if field["type"] == "array" {
            fields(page, &format!("{path}[]"), &field["items"]);
        } else if !described_elsewhere {
            fields(page, &path, field);
        }
    }
}

fn generated() -> String {
    let mut page = String::new();
    for definition in linchpin_doors::registry().definitions() {
        let crd = serde_json::to_value(&definition).unwrap();
        let spec = &crd["spec"];
        let names = &spec["names"];
        let version = &spec["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let short: Vec<&str> =
            names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let short = match short.as_slice() {
            [] => "no short names".to_owned(),
            names => format!("short names {}", names.join(" and ")),
        };
        writeln!(page, "\n## {}\n", names["kind"].as_str().unwrap()).unwrap();
        let group = spec["group"].as_str().unwrap();
        let version = version["name"].as_str().unwrap();
        let scope = spec["scope"].as_str().unwrap();
        writeln!(
            page,
            "`{group}/{version}`, {}, {short}. {}",
            scope.to_lowercase(),
            schema["description"].as_str().unwrap()
        )
        .unwrap();
        for part in ["spec", "status"] {
            writeln!(
                page,
                "\n### {} {part}\n\n| field | type | meaning |\n|---|---|---|",
                names["kind"].as_str().unwrap()
            )
            .unwrap();
            fields(&mut page, "", &schema["properties"][part]);
        }
    }
    page
}

/// Every reason that a status, condition or event can show.
fn reasons() -> String {
    let mut page = String::from("\n## Conditions\n\n| type | True means |\n|---|---|\n");
    for condition in ConditionType::ALL {
        writeln!(page, "| `{condition}` | {} |", condition.meaning()).unwrap();
    }
    page.push_str("\n## Reasons\n\n| reason | meaning | what to do |\n|---|---|---|\n");
    for reason in Reason::ALL {
        writeln!(page, "| `{reason}` | {} | {} |", reason.meaning(), reason.remedy().unwrap_or_default())
            .unwrap();
    }
    page
}

fn limits() -> String {
    let mut page = String::from("\n| limit | size | why |\n|---|---|---|\n");
    for (name, size, why) in limits::TABLE {
        writeln!(page, "| {} | {size} | {why} |", name.to_lowercase().replace('_', " ")).unwrap();
    }
    page
}

/// The fields of one kind that its own page lists: those of the spec, as deep as people write them often.
fn kind(name: &str) -> String {
    const DEPTH: usize = 3;
    let definitions = linchpin_doors::registry().definitions();
    let definition = definitions.iter().find(|definition| definition.spec.names.kind == name).unwrap();
    let crd = serde_json::to_value(definition).unwrap();
    let mut all = String::new();
    fields(&mut all, "", &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]);
    let near = |line: &&str| line.split('|').nth(1).is_some_and(|path| path.matches('.').count() < DEPTH);
    let lines: Vec<&str> = all.lines().filter(near).collect();
    format!("\n| field | type | meaning |\n|---|---|---|\n{}\n", lines.join("\n"))
}

/// Compares what a page has after the mark, or writes it.
fn compare(file: &str, generated: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let page = fs::read_to_string(&path).unwrap();
    let (introduction, stored) = page.split_once(MARK).unwrap_or_else(|| panic!("{file} has no mark"));
    if env::var_os("LINCHPIN_UPDATE").is_some() {
        fs::write(&path, format!("{introduction}{MARK}{generated}")).unwrap();
        return;
    }
    assert!(stored == generated, "docs/{file} is out of date: run make docs and commit what it writes");
}

#[test]
fn the_reference_pages_are_the_generated_ones() {
    compare("api.md", &generated());
    compare("reasons.md", &reasons());
    compare("limits.md", &limits());
    compare("resourcedependency.md", &kind("ResourceDependency"));
    compare("dependencygroup.md", &kind("DependencyGroup"));
    compare("appbundle.md", &kind("AppBundle"));
    compare("bootdependency.md", &kind("BootDependency"));
    compare("sync.md", &kind("Sync"));
}
