{{/* comment
over lines */}}
{{- define "partial.name" -}}
{{ .Values.name }}
{{- end -}}
{{- define "partial.wrap" }}<{{ include "partial.name" . }}>{{ end }}
{{- define "partial.labels" }}
app: {{ include "partial.name" . }}
release: {{ .Release.Name }}
{{- end }}
{{- define "partial.empty" }}{{ end }}
{{- define "partial.recursive" -}}
{{- if gt (int .) 0 }}{{ . }},{{ include "partial.recursive" (sub (int .) 1) }}{{ end }}
{{- end }}
{{- define "overridden" }}parent{{ end }}
{{- define "twice" }}one{{ end }}
{{- define "blank" }}filled{{ end }}
