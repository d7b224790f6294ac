# Completion of promptspool for fish, which `promptspool completion fish` prints.
function __promptspool_complete
    set -l words (commandline -opc)
    set -l word (string unescape -- (commandline -ct); or commandline -ct)
    set -l lines (command $words "$word" --generate-bash-completion 2>/dev/null)
    if string match -q ':files*' -- "$lines[1]"
        __fish_complete_path "$word"
    else
        printf '%s\n' $lines
    end
end
complete -c promptspool -f -k -a '(__promptspool_complete)'
