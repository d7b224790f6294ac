{{/* The name of everything: the release's, which may have ours in it. */}}
{{- define "promptspool.name" -}}
{{- if contains "promptspool" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-promptspool{{ end }}
{{- end }}

{{- define "promptspool.selector" -}}
app.kubernetes.io/name: promptspool-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "promptspool.labels" -}}
{{ include "promptspool.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "promptspool.monitoring" -}}
{{ include "promptspool.labels" . }}
{{- with .Values.monitoring.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
