# Completion of frazilctl for bash.
_frazilctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word command=
	local commands="status check txn txns tables table batch batches findings halt resume version import export"
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case " $commands " in *" $word "*) command=$word ;; esac
	done
	case $prev in
	-a | --admin | -t | --timeout | -n | --limit | --cause) COMPREPLY=() && return ;;
	--from | --to | --*warehouse | --*scope | --*header | --*uri | --namespace | --table | --parallel) COMPREPLY=() && return ;;
	--from-file | --output | --*-file) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
	-r | --rpc) COMPREPLY=($(compgen -f -- "$cur")) && return ;;
	esac
	if [[ $cur == -* && ($command == import || $command == export) ]]; then
		local peer="warehouse token-file credential-file oauth2-uri scope header header-file ca-file"
		COMPREPLY=($(compgen -W "--from --from-file --to --output --namespace --table --parallel --dry-run --overwrite --force --timeout --json
			$(printf -- '--%s --to-%s ' $(for word in $peer; do echo "$word $word"; done))" -- "$cur"))
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "--admin --rpc --timeout --json --halted --cause --limit --help" -- "$cur"))
	elif [[ -z $command ]]; then
		COMPREPLY=($(compgen -W "$commands" -- "$cur"))
	elif [[ " check table txns batch batches findings halt resume " == *" $command "* ]]; then
		# Names of the tables that the daemon holds; silence when it does not answer.
		local names
		names=$(frazilctl --timeout 1000 tables 2>/dev/null | awk '{print $2}')
		COMPREPLY=($(compgen -W "$names" -- "$cur"))
	else
		COMPREPLY=()
	fi
}
complete -F _frazilctl frazilctl
