{{ define "twice" }}two{{ end }}
{{ define "blank" }}   {{ end }}
