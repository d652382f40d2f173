import type { Option } from '@commander-js/extra-typings'
import { SETTINGS } from '../../src/config.ts'

const LINE_WIDTH = 100

/** The database of the units, which is not the default of the executable. */
const UNIT_DATABASE = '/var/lib/plantstore/plantstore.db'

const INTRODUCTION = [
  'Settings of Plant Store, of the server and its nightly backups. Written by bun run docs.',
  'To change a setting, remove the # before it and run, as root: systemctl restart plantstore.',
  'A value behind a # is the default. If a setting shows no value, give it one when you remove its #.',
  'The commands of /usr/bin/plantstore read this file, too, but no drop-in of systemctl edit.',
]

/** The settings file of the packages: each option of `serve`, as a comment with its default. */
export async function settingsFile(): Promise<string> {
  const options: readonly Option[] = Object.values(SETTINGS)
  const groups = Map.groupBy(options, ({ helpGroupHeading = '' }) => helpGroupHeading)
  const sections = [...groups].map(([heading, members]) => [`# ---- ${heading}`, ...members.map(setting)].join('\n\n'))
  return `${[INTRODUCTION.map(comment).join('\n'), ...sections].join('\n\n')}\n`
}

/** The text of an option, and its line. */
function setting(option: Option): string {
  const isFlag = !option.required && !option.optional
  const value = option.name() === 'database' ? UNIT_DATABASE : option.defaultValueDescription
  const shown = isFlag ? 'false' : value
  return `${comment(option.description)}\n#${option.envVar}=${shown ?? ''}`
}

const comment = (text: string): string => Bun.wrapAnsi(text, LINE_WIDTH - 2).replace(/^/gm, '# ')
