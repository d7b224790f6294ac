{{/*
The sidecar, for the pods of another chart: one of their initContainers.

  initContainers:
    {{- include "promptspool.sidecar" . | nindent 4 }}
  volumes:
    {{- include "promptspool.sidecar.volume" . | nindent 4 }}

Its settings are those of this chart, under promptspool.sidecar in the other chart's values. The
app finds it at http://127.0.0.1:8787. What it has not delivered when the pod is deleted is lost
with the volume: to keep it, leave promptspool.sidecar.volume out, and give the StatefulSet a
volumeClaimTemplate promptspool-spool of 1600Mi and the pod the fsGroup 65532.
*/}}
{{- define "promptspool.sidecar" -}}
{{- $values := .Values.promptspool | default .Values }}
{{- $upstream := $values.sidecar.upstream }}
{{- if not $upstream }}
  {{- if not $values.server.enabled }}
    {{- fail "promptspool.sidecar.upstream is empty and there is no server in this release: set the server's URL" }}
  {{- end }}
  {{- $upstream = printf "http://%s:8788" (include "promptspool.name" .) }}
{{- end }}
- name: promptspool
  image: {{ $values.image }}
  restartPolicy: Always
  args:
    - sidecar
    - --data=/data/sidecar
    - --upstream={{ $upstream }}
    {{- if hasPrefix "http://" $upstream }}
    - --upstream-plaintext
    {{- end }}
    - --ops-listen=0.0.0.0:9787
    - --listen-public # for the probes; the API stays on loopback
    - --spool-bytes-max=1GiB
    - --disk-max=1280MiB
    - --log-format=json
    {{- range $values.sidecar.args }}
    - {{ . | quote }}
    {{- end }}
  env:
    - {name: GOMEMLIMIT, value: {{ div (mul $values.sidecar.memory 5) 6 }}MiB}
    {{- with $values.sidecar.env }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with $values.sidecar.envFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - {name: ops, containerPort: 9787}
  startupProbe: {httpGet: {path: /startupz, port: ops}, failureThreshold: 60, periodSeconds: 1}
  {{- include "promptspool.probes" . | nindent 2 }}
  resources:
    requests: {cpu: {{ $values.sidecar.cpu }}, memory: {{ $values.sidecar.memory }}Mi}
    limits: {memory: {{ $values.sidecar.memory }}Mi}
  securityContext:
    {{- include "promptspool.rights" . | nindent 4 }}
    {{- include "promptspool.confined" . | nindent 4 }}
  volumeMounts:
    - {name: promptspool-spool, mountPath: /data}
    {{- with $values.sidecar.volumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/*
The same sidecar for the containers of a pod: its app starts, and gets traffic, also without it.
*/}}
{{- define "promptspool.sidecar.beside" -}}
{{- $container := include "promptspool.sidecar" . | fromYamlArray | first }}
{{- list (omit $container "restartPolicy" "readinessProbe") | toYaml }}
{{- end }}

{{- define "promptspool.sidecar.volume" -}}
- name: promptspool-spool
  emptyDir: {sizeLimit: 1600Mi} # a quarter above --disk-max: the kubelet evicts what exceeds it
{{- end }}
