{{/*
The sidecar, for the pods of another chart: one of their initContainers.

  initContainers:
    {{- include "promptspool.sidecar" (dict "image" "promptspool" "upstream" "http://promptspool:8788") | nindent 4 }}
  volumes:
    {{- include "promptspool.sidecar.volume" . | nindent 4 }}

The app finds it at http://127.0.0.1:8787. What it has not delivered when the pod is deleted goes
with the volume: where that must not be, leave promptspool.sidecar.volume out, and have a
volumeClaimTemplate promptspool-spool of 1600Mi and the pod's fsGroup 65532.
*/}}
{{- define "promptspool.sidecar" -}}
- name: promptspool
  image: {{ required "promptspool.sidecar needs an image" .image }}
  restartPolicy: Always
  args:
    - sidecar
    - --data=/data/sidecar
    - --upstream={{ required "promptspool.sidecar needs an upstream, the server's URL" .upstream }}
    {{- if hasPrefix "http://" .upstream }}
    - --upstream-plaintext
    {{- end }}
    - --ops-listen=0.0.0.0:9787
    - --listen-public # for the probes; the API stays on loopback
    - --spool-bytes-max=1GiB
    - --disk-max=1280MiB
    - --log-format=json
    {{- range .args }}
    - {{ . | quote }}
    {{- end }}
  env:
    - {name: GOMEMLIMIT, value: 80MiB}
  ports:
    - {name: ops, containerPort: 9787}
  startupProbe: {httpGet: {path: /startupz, port: ops}, failureThreshold: 60, periodSeconds: 1}
  {{- include "promptspool.probes" . | nindent 2 }}
  resources:
    requests: {cpu: 50m, memory: 96Mi}
    limits: {memory: 96Mi}
  securityContext:
    {{- include "promptspool.rights" . | nindent 4 }}
    {{- include "promptspool.confined" . | nindent 4 }}
  volumeMounts:
    - {name: promptspool-spool, mountPath: /data}
{{- end }}

{{- define "promptspool.sidecar.volume" -}}
- name: promptspool-spool
  emptyDir: {sizeLimit: 1600Mi} # a quarter above --disk-max: the kubelet evicts what exceeds it
{{- end }}
