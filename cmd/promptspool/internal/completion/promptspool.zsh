#compdef promptspool
# Completion of promptspool for zsh, which `promptspool completion zsh` prints.
compdef _promptspool promptspool

_promptspool() {
	local -a lines whole open
	local line value
	lines=("${(@f)$("${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" --generate-bash-completion 2>/dev/null)}")

	if [[ $lines[1] == :files* ]]; then
		_files
		return
	fi
	for line in $lines; do
		value=${line%%$'\t'*}
		line=${value//:/\\:}:${line#*$'\t'}
		# A value still follows these.
		if [[ $value == *[=:] ]]; then open+=("$line"); else whole+=("$line"); fi
	done
	_describe -V promptspool whole -- open -S ''
}

# The file is either sourced, or what zsh loads when the function is first called.
if [[ $funcstack[1] == _promptspool ]]; then
	_promptspool "$@"
fi
