//! Rendering and parsing a template of about 2 KB; the goal for rendering is 30 µs.
#![allow(missing_docs, clippy::unwrap_used)]

use divan::Bencher;
use linchpin_lang::template::{RenderClock, Template, ValueTemplate};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A Deployment and a ConfigMap as users write them.
const SOURCE: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Values.name }}
  namespace: {{ .Dependencies.namespace_kubestellar_system.Name }}
  labels:
    {{- toYaml .Values.labels | nindent 4 }}
  annotations:
    example.com/endpoint: {{ .Dependencies.controlplane_its1.Status.Endpoint | quote }}
    example.com/created: {{ .Now | quote }}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector:
    matchLabels:
      app: {{ .Values.name }}
  template:
    metadata:
      labels:
        app: {{ .Values.name }}
        tier: {{ .Values.labels.tier | default "none" | quote }}
    spec:
      containers:
      {{- range $index, $container := .Values.containers }}
      - name: {{ $container.name }}
        image: "{{ $container.image }}:{{ $container.tag | default "latest" }}"
        ports:
        {{- range $container.ports }}
        - containerPort: {{ . }}
        {{- end }}
        env:
        - name: INDEX
          value: {{ $index | quote }}
        {{- if eq $.Dependencies.db.State "Ready" }}
        - name: DATABASE
          value: {{ printf "%s://%s:%d" "tcp" $.Dependencies.db.Status.host (int $.Dependencies.db.Status.port) | quote }}
        {{- end }}
        {{- with $container.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.name }}-config
  namespace: {{ .Dependencies.namespace_kubestellar_system.Name }}
data:
  {{- if and (eq .Dependencies.namespace_kubestellar_system.State "Ready") (gt .Values.replicas 1) }}
  highly-available: "true"
  {{- else }}
  highly-available: "false"
  {{- end }}
  endpoint: {{ .Dependencies.controlplane_its1.Status.Endpoint | b64enc }}
  checksum: {{ .Values.name | sha256sum | trunc 12 }}
  conditions: |
    {{- range .Dependencies.db.Status.conditions }}
    {{ .type }}={{ .status }}
    {{- end }}
"#;

fn data() -> Value {
    json!({
        "Values": {
            "name": "web", "replicas": 3, "labels": {"app": "web", "tier": "front"},
            "containers": [
                {"name": "app", "image": "registry.example.com/app", "tag": "1.2.3", "ports": [8080, 8443],
                 "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}}},
                {"name": "proxy", "image": "registry.example.com/proxy", "tag": "", "ports": [9090], "resources": {}}
            ]
        },
        "Dependencies": {
            "namespace_kubestellar_system": {"Name": "kubestellar-system", "State": "Ready"},
            "controlplane_its1": {"Status": {"endpoint": "https://its1.example.com:6443"}},
            "db": {"State": "Ready", "Status": {"host": "db", "port": 5432, "conditions": [
                {"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}]}}
        }
    })
}

#[divan::bench]
fn render_2_kb(bencher: Bencher<'_, '_>) {
    let template = Template::parse("bench", SOURCE).unwrap();
    let (data, clock) = (data(), RenderClock::at(jiff::Timestamp::UNIX_EPOCH));
    assert!(template.render(&data, &clock).is_ok());
    bencher.bench(|| template.render(&data, &clock));
}

#[divan::bench]
fn parse_2_kb(bencher: Bencher<'_, '_>) {
    bencher.bench(|| Template::parse("bench", SOURCE));
}

#[divan::bench]
fn static_reads_of_2_kb(bencher: Bencher<'_, '_>) {
    let template = Template::parse("bench", SOURCE).unwrap();
    bencher.bench(|| template.reads());
}

#[divan::bench]
fn render_a_body(bencher: Bencher<'_, '_>) {
    let body = json!({"kind": "ConfigMap", "metadata": {"name": "{{ .Values.name }}"}, "spec": {"replicas": "{{ .Values.replicas }}", "plain": ["a", "b", "c"]}});
    let template = ValueTemplate::parse("bench", &body).unwrap();
    let (data, clock) = (data(), RenderClock::at(jiff::Timestamp::UNIX_EPOCH));
    bencher.bench(|| template.render(&data, &clock));
}
