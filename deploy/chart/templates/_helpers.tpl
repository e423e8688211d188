{{- define "equipoise.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "equipoise.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "equipoise.name" -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "equipoise.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "equipoise.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "equipoise.pod" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "equipoise.mounts" -}}
- {name: state, mountPath: /state}
- {name: scratch, mountPath: /tmp}
{{- if .Values.tables.claim }}
- {name: tables, mountPath: /state/tables, readOnly: true}
{{- end }}
{{- if .Values.store.passwordSecret }}
- {name: password, mountPath: /run/equipoise, readOnly: true}
{{- end }}
{{- end }}

{{- define "equipoise.environment" -}}
- {name: EQUIPOISE_STATE, value: /state/equipoise}
{{- if .Values.store.passwordSecret }}
- {name: PGPASSFILE, value: /tmp/pgpass}
{{- end }}
{{- end }}
