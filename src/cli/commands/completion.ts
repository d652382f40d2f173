import { Argument, type Command, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { oneOf, parseValue } from '../../values.ts'
import { defineCommand, namesOf } from '../command.ts'
import type { Io } from '../io.ts'

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** `completion`: prints a script that knows all commands, so that no Tab waits for a start of this executable. */
export const completionCommand = (program: Command, io: Io) =>
  defineCommand(program, 'completion', {
    does: 'Prints the script with which a shell completes commands, options, values and paths.',
    examples: [
      'completion bash > /etc/bash_completion.d/plantstore',
      'completion fish > ~/.config/fish/completions/plantstore.fish',
    ],
  })
    .addArgument(new Argument('<shell>', 'The shell.').choices(namesOf(SHELLS)).argParser(parseShell))
    .action(async (shell) => io.print(SHELLS[shell](placesBelow(program))))

const parseShell = (text: string) => parseValue(text, oneOf(namesOf(SHELLS)), 'The shell')

type Place = ReturnType<typeof placeAfter>
type Value = ReturnType<typeof valueFor>

/** What follows a command, and those below it. The words of a command can also follow `help`. */
function placesBelow(command: CommandUnknownOpts, words: readonly string[] = []): readonly Place[] {
  const places = command.commands.flatMap((each) => placesBelow(each, [...words, each.name()]))
  const afterHelp = places.length > 0 ? [placeAfter(command, ['help', ...words])] : []
  return [...afterHelp, placeAfter(command, words), ...places]
}

function placeAfter(command: CommandUnknownOpts, words: readonly string[]) {
  const commands = command.commands.map((each) => ({ name: each.name(), help: brief(each.description()) }))
  const visible = command.createHelp().visibleOptions(command)
  const options = visible.map(({ long, flags, description, required, optional, argChoices }) => ({
    ...{ flag: `${long}`, help: brief(description) },
    value: required || optional ? valueFor(flags, argChoices) : undefined,
  }))
  const [first] = command.registeredArguments
  const next = valueFor(`<${first?.name()}>`, first?.argChoices ?? commands.map(({ name }) => name))
  // Options and arguments can stand between the words and the cursor, but no words of commands.
  return { words, pattern: `${words.join(' ')} ${commands.length > 0 ? '' : '*'}`, commands, options, next }
}

/** A value is the path of a file, or one of some words. Without words, only the user knows it. */
const valueFor = (usage: string, words: readonly string[] = []) => ({
  isPath: /<(?:path|where|file)>/.test(usage),
  words: words.join(' '),
})

/** The first sentence of a help. */
const brief = (help: string): string => help.replace(/\.(?: .*)?$/, '')
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const escapeAll = (text: string): string => text.replace(/[^\w*]/g, '\\$&')

function bashScript(places: readonly Place[]): string {
  const complete = ({ isPath, words }: Value) => `words='${words}' paths=${isPath ? 1 : ''} ;;`
  const afterOptions = places.flatMap(({ options }) =>
    options.flatMap(({ flag, value }) => (value ? [`*' ${flag} ') ${complete(value)}`] : [])),
  )
  const afterWords = places.map(({ pattern, options, next }) => {
    const flags = options.map(({ flag }) => flag).join(' ')
    return `${escapeAll(pattern)}) options='${flags}' ${complete(next)}`
  })
  return `# Completes plantstore in bash 4 and later.
_plantstore() {
  local IFS=$' \\t\\n' word=\${COMP_WORDS[COMP_CWORD]} words='' options='' paths=''
  local before="\${COMP_WORDS[*]:1:COMP_CWORD-1} "
  # Bash takes the sign in --option=value for a word.
  [[ $word != '=' ]] || word=''
  case "\${before/% = / }" in
    ${[...new Set(afterOptions), ...afterWords].join('\n    ')}
  esac
  [[ $word != -* ]] || words=$options
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ -z $paths ]] || compopt -o default
}
complete -F _plantstore plantstore
`
}

function zshScript(places: readonly Place[]): string {
  const complete = ({ isPath, words }: Value) => (isPath ? '_files' : `(${words})`)
  const branches = places.map(({ words, pattern, options, commands, next }) => {
    const flags = options.map(({ flag, help, value }) =>
      value ? `*${flag}=[${escapeAll(help)}]:value:${complete(value)}` : `${flag}[${escapeAll(help)}]`,
    )
    const names = commands.map(({ name, help }) => `${name}\\:${escapeAll(help)}`).join(' ')
    const specs = [...flags, `:next:${names === '' ? complete(next) : `((${names}))`}`].map(quote).join(' ')
    return `${escapeAll(pattern)}) compset -n ${words.length + 1}; _arguments ${specs} ;;`
  })
  return `#compdef plantstore
_plantstore() {
  case "\${(j: :)words[2,CURRENT-1]} " in
    ${branches.join('\n    ')}
  esac
}
# The first Tab runs a file of this name as the function. Any other file was sourced.
if [[ $funcstack[1] == _plantstore ]]; then _plantstore; else compdef _plantstore plantstore; fi
`
}

function fishScript(places: readonly Place[]): string {
  const complete = ({ isPath, words }: Value) => (isPath ? '-F' : `-f -a '${words}'`)
  const lines = places.flatMap(({ pattern, commands, options, next }) => {
    const values = options.map(({ value }) => (value ? ` -r ${complete(value)}` : ''))
    const rules = [
      ...commands.map(({ name, help }) => `-a ${name} -d ${quote(help)}`),
      ...options.map(({ flag, help }, index) => `-l ${flag.slice(2)} -d ${quote(help)}${values[index]}`),
      ...(commands.length > 0 ? [] : [complete(next)]),
    ]
    return rules.map((rule) => `complete -c plantstore -n "__plantstore_after '${pattern}'" ${rule}`)
  })
  return `# Completes plantstore in fish.
function __plantstore_after
  set -l words (commandline -opc)[2..-1]
  string match -q -- $argv[1] "$words "
end
complete -c plantstore -f
${lines.join('\n')}
`
}
