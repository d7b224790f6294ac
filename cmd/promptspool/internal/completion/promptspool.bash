# Completion of promptspool for bash, which `promptspool completion bash` prints.
_promptspool() {
	local rest=${COMP_LINE:0:COMP_POINT} words=() word line lead i
	COMPREPLY=()

	# bash also splits at = and :, which are parts of our words.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
			words+=('')
		fi
		rest=${rest#"${rest%%[![:space:]]*}"}
		((i < COMP_CWORD)) || word=$rest
		words[${#words[@]} - 1]+=$word
		rest=${rest#"$word"}
	done
	words[0]=${words[0]/#\~/$HOME}

	# The program sees words without their quotes, the last of which may be open.
	for ((i = 1; i < ${#words[@]}; i++)); do
		[[ ${words[i]} == [\"\']* ]] && words[i]=${words[i]#?} words[i]=${words[i]%[\"\']}
	done
	# Only what follows the last = or : is replaced.
	lead=${words[${#words[@]} - 1]}
	[[ $word == [=:] ]] || lead=${lead%"${word#[\"\']}"}

	while IFS=$'\t' read -r line _; do
		if [[ $line == :files ]]; then
			compopt -o filenames 2>/dev/null
			while read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${word#[=:]}")
			return
		fi
		[[ $line == *[=:] ]] && compopt -o nospace 2>/dev/null
		line=${line#"$lead"}
		[[ $word == [\"\']* ]] || printf -v line %q "$line"
		COMPREPLY+=("$line")
	done < <("${words[@]}" --generate-bash-completion 2>/dev/null)
}
complete -F _promptspool promptspool
