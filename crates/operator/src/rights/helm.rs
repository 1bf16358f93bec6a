//! The table as `templates/rbac.yaml` of the chart: the same roles, with the chart's values as conditions.
//!
//! `linchpin rbac --operator -o helm` prints it, and a test compares it with the file.

use std::fmt::Write as _;

use super::{ForWebhooks, NAME, RightRow, RightScope, TABLE};

const HEAD: &str = "\
{{- /* Written by `linchpin rbac --operator -o helm` from the operator's table of rights: change that, not this. */}}
{{- $name := include \"linchpin.fullname\" . }}
{{- $account := dict \"kind\" \"ServiceAccount\" \"name\" (include \"linchpin.serviceAccountName\" .) \"namespace\" .Release.Namespace }}
";

/// The text of the file.
pub fn template() -> String {
    let mut out = HEAD.to_owned();
    let cluster = || TABLE.iter().filter(|row| row.scope == RightScope::Cluster);
    let watched = || cluster().filter(|row| row.by_namespace);
    role(&mut out, "ClusterRole", "{{ $name }}", None);
    out.push_str("  {{- if not .Values.watchNamespaces }}\n");
    rules(&mut out, watched(), ".Values");
    out.push_str("  {{- end }}\n");
    rules(&mut out, cluster().filter(|row| !row.by_namespace), ".Values");
    binding(&mut out, "ClusterRoleBinding", "{{ $name }}", None, "ClusterRole", "{{ $name }}");
    out.push_str("{{- range $namespace := .Values.watchNamespaces }}\n");
    let in_range = Some("{{ $namespace | quote }}");
    role(&mut out, "Role", "{{ $name }}-watched", in_range);
    rules(&mut out, watched(), "$.Values");
    binding(&mut out, "RoleBinding", "{{ $name }}-watched", in_range, "Role", "{{ $name }}-watched");
    out.push_str("{{- end }}\n");
    let release = Some("{{ .Release.Namespace | quote }}");
    role(&mut out, "Role", "{{ $name }}", release);
    rules(&mut out, TABLE.iter().filter(|row| row.scope == RightScope::Release), ".Values");
    binding(&mut out, "RoleBinding", "{{ $name }}", release, "Role", "{{ $name }}");
    let tenant = "{{ $name }}-tenant";
    role(&mut out, "ClusterRole", tenant, None);
    rules(&mut out, TABLE.iter().filter(|row| row.scope == RightScope::Tenant), ".Values");
    out.push_str("{{- if eq .Values.tenancy.mode \"Cluster\" }}\n");
    binding(&mut out, "ClusterRoleBinding", tenant, None, "ClusterRole", tenant);
    out.push_str("{{- else }}\n{{- range $namespace := .Values.tenancy.namespaces }}\n");
    binding(&mut out, "RoleBinding", tenant, in_range, "ClusterRole", tenant);
    out.push_str("{{- end }}\n{{- end }}\n");
    out
}

fn header(out: &mut String, kind: &str, name: &str, namespace: Option<&str>) {
    let _ = write!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
    );
    if let Some(namespace) = namespace {
        let _ = writeln!(out, "  namespace: {namespace}");
    }
    out.push_str("  labels: {{- include \"linchpin.labels\" $ | nindent 4 }}\n");
}

fn role(out: &mut String, kind: &str, name: &str, namespace: Option<&str>) {
    header(out, kind, name, namespace);
    out.push_str("rules:\n");
}

fn binding(out: &mut String, kind: &str, name: &str, namespace: Option<&str>, role_kind: &str, role: &str) {
    header(out, kind, name, namespace);
    let _ = write!(
        out,
        "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role_kind}\n  name: {role}\nsubjects:\n  \
         - {{{{- toYaml $account | nindent 4 }}}}\n"
    );
}

/// When the chart gives a row; none: always.
fn condition(row: &RightRow, values: &str) -> Option<String> {
    let door = format!("{values}.doors.{}", row.door?);
    Some(match row.webhooks {
        ForWebhooks::No => door,
        ForWebhooks::Served => format!("and {door} {values}.webhooks.enabled"),
        ForWebhooks::OwnCertificate => {
            format!("and {door} {values}.webhooks.enabled (not {values}.webhooks.certManager.enabled)")
        }
    })
}

/// Rules, those with one condition after another under it.
fn rules<'a>(out: &mut String, rows: impl Iterator<Item = &'a RightRow>, values: &str) {
    let mut open = None;
    for row in rows {
        let condition = condition(row, values);
        if condition != open {
            if open.is_some() {
                out.push_str("  {{- end }}\n");
            }
            if let Some(condition) = &condition {
                let _ = writeln!(out, "  {{{{- if {condition} }}}}");
            }
            open = condition;
        }
        let list = |words: &[&str]| serde_json::json!(words).to_string().replace(',', ", ");
        let _ = writeln!(out, "  # {}", row.why);
        let _ = writeln!(out, "  - apiGroups: {}", list(row.groups));
        let _ = writeln!(out, "    resources: {}", list(row.resources));
        if !row.names.is_empty() {
            let _ = writeln!(out, "    resourceNames: {}", names(row));
        }
        let _ = writeln!(out, "    verbs: {}", list(row.verbs));
    }
    if open.is_some() {
        out.push_str("  {{- end }}\n");
    }
}

/// The names of a rule. Webhook configurations belong to the whole cluster, so they are called like the release.
fn names(row: &RightRow) -> String {
    let of_release = row.groups.contains(&"admissionregistration.k8s.io");
    let name = |name: &&str| match name.strip_prefix(NAME) {
        Some(rest) if of_release => format!("{{{{ $name }}}}{rest}"),
        _ => (*name).to_owned(),
    };
    serde_json::json!(row.names.iter().map(name).collect::<Vec<_>>()).to_string().replace(',', ", ")
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf};

    #[test]
    fn the_chart_gives_what_the_table_says() {
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/linchpin/templates/rbac.yaml");
        if env::var_os("LINCHPIN_UPDATE").is_some() {
            fs::write(&file, super::template()).unwrap();
        }
        assert!(
            fs::read_to_string(&file).unwrap_or_default() == super::template(),
            "templates/rbac.yaml is out of date: run this test with LINCHPIN_UPDATE=1 and commit what it writes"
        );
    }
}
