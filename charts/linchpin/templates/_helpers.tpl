{{- /* What more than one template says. */}}
{{- define "linchpin.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The release's name if it says linchpin, else with it. */}}
{{- define "linchpin.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "linchpin.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "linchpin.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "linchpin.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "linchpin.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: with serviceAccount.create false, name the ServiceAccount that is there" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* Selectors never change, so that upgrades never touch them. */}}
{{- define "linchpin.selector" -}}
app.kubernetes.io/name: {{ include "linchpin.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "linchpin.labels" -}}
{{ include "linchpin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: linchpin
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "linchpin.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "linchpin.waitImage" -}}
{{- if .Values.waitImage.digest -}}
{{ .Values.waitImage.repository }}@{{ .Values.waitImage.digest }}
{{- else -}}
{{ .Values.waitImage.repository }}:{{ default .Chart.AppVersion .Values.waitImage.tag }}
{{- end }}
{{- end }}

{{- /* The namespaces whose pods and workloads may be held. */}}
{{- define "linchpin.optedIn" -}}
matchLabels:
  linchpin.dev/boot: enabled
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: [kube-system, kube-public, kube-node-lease, {{ .Release.Namespace | quote }}]
  {{- with .Values.watchNamespaces }}
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ toJson . }}
  {{- end }}
{{- end }}

{{- /* The namespaces whose objects this release serves: those of another one are not its business. Objects without a namespace
are matched by every such selector. */}}
{{- define "linchpin.watched" -}}
{{- with .Values.watchNamespaces -}}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values: {{ toJson . }}
{{- else -}}
namespaceSelector: {}
{{- end }}
{{- end }}

{{- /* The server's own defaults are written out where it takes a part of an object as a whole: otherwise whoever applies the
same again under another name (Helm after kubectl) is in conflict with what was stored. */}}
{{- define "linchpin.matchDefaults" -}}
matchPolicy: Equivalent
objectSelector: {}
{{- end }}

{{- /* Who writes the authority of the certificate into the webhook configurations. */}}
{{- define "linchpin.injectAuthority" -}}
{{- if .Values.webhooks.certManager.enabled -}}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "linchpin.fullname" . }}-webhook
{{- end }}
{{- end }}

{{- /* The doors that are open, as --doors has them. */}}
{{- define "linchpin.doors" -}}
{{- $open := list }}
{{- range $door, $on := .Values.doors }}{{ if $on }}{{ $open = append $open $door }}{{ end }}{{ end }}
{{- if not $open }}{{ fail "doors: at least one must be true, for an operator that serves nothing is a mistake" }}{{ end }}
{{- join "," $open }}
{{- end }}

{{- /* Where all Pods of the release may run: a test that cannot be scheduled says nothing. */}}
{{- define "linchpin.nodes" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* PodSecurity restricted, for the operator and for the test. */}}
{{- define "linchpin.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "linchpin.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* The Pod of the test is none of the operator's: no Service or budget takes it for one. */}}
{{- define "linchpin.testLabels" -}}
app.kubernetes.io/name: {{ include "linchpin.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: test
app.kubernetes.io/part-of: linchpin
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The consist process is another component: no Service or budget of the operator's takes it for one. */}}
{{- define "linchpin.consistSelector" -}}
app.kubernetes.io/name: {{ include "linchpin.name" . }}-consist
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "linchpin.consistLabels" -}}
{{ include "linchpin.consistSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: consist
app.kubernetes.io/part-of: linchpin
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* What cleans up after it is neither of them. */}}
{{- define "linchpin.consistJobLabels" -}}
app.kubernetes.io/name: {{ include "linchpin.name" . }}-consist-disable
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: consist
app.kubernetes.io/part-of: linchpin
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
