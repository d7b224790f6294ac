{{/* What the containers of both roles have in common. */}}
{{- define "promptspool.probes" -}}
readinessProbe: {httpGet: {path: /readyz, port: ops}}
livenessProbe: {httpGet: {path: /livez, port: ops}}
{{- end }}

{{- define "promptspool.rights" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "promptspool.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
