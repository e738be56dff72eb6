{{- /* SPDX-License-Identifier: MIT */ -}}
{{- define "becalm.selector" -}}
app.kubernetes.io/name: becalm
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.kind }}
{{- end }}

{{- define "becalm.labels" -}}
{{ include "becalm.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The container, which a chart of your own may take into initContainers as a sidecar; it needs becalm.volumes, too. */ -}}
{{- define "becalm.container" -}}
- name: becalm
  image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- if eq .Values.kind "sidecar" }}
  restartPolicy: Always # this makes it a sidecar: started before the program, stopped after it
  {{- end }}
  args: [proxy, --quiet, /etc/becalm/policy/becalm.yaml]
  ports:
    {{- if eq .Values.kind "gateway" }}
    - {name: http, containerPort: 8080}
    {{- end }}
    - {name: becalm-admin, containerPort: 9900}
  startupProbe: # of a sidecar: the program starts when this has succeeded
    httpGet: {path: /readyz, port: becalm-admin}
    periodSeconds: 1
    failureThreshold: 30
  readinessProbe: # 503 while the gateway drains; the state of the services has no influence
    httpGet: {path: /readyz, port: becalm-admin}
    periodSeconds: 5
  livenessProbe:
    httpGet: {path: /healthz, port: becalm-admin}
    periodSeconds: 10
    failureThreshold: 3
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  volumeMounts: # directories, not subPath: a changed ConfigMap does not arrive in a subPath
    - {name: policy, mountPath: /etc/becalm/policy, readOnly: true}
    - {name: token, mountPath: /etc/becalm/token, readOnly: true}
{{- end }}

{{- define "becalm.volumes" -}}
- name: policy
  configMap: {name: {{ .Release.Name }}}
- name: token
  secret: {secretName: {{ .Values.tokenSecret }}, defaultMode: 0440}
{{- end }}

{{- define "becalm.security" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
