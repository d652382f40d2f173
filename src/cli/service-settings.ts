// Tested in test/cli/transcripts/installed.txt.
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { OPTIONS } from '../config.ts'
import { isPostgresUrl } from '../database-url.ts'
import { AppError, codeOf, misused, orUndefined, readFailure } from '../error.ts'
import { withName } from '../values.ts'
import { parseEnvironmentFile } from './environment-file.ts'
import type { Io } from './io.ts'

/** Where the packages put the executable and the settings of the service. */
const EXECUTABLE = '/usr/bin/plantstore'
export const SETTINGS_FILE = '/etc/plantstore/plantstore.env'
/** `WorkingDirectory=` of the unit, in which relative paths of the settings begin. */
const DIRECTORY = '/var/lib/plantstore'
/** The database of the service if the settings name none, and that of a command without a service. */
const DEFAULT_DATABASE = './plantstore.db'

type Variables = Readonly<Record<string, string>>

/**
 * Gives a command the settings of the service that came with it in a package. A command that names its database or its address
 * is about another place, so it gets none. Returns all variables of the settings. Throws `misused` if they cannot be used.
 */
export function applyServiceSettings(command: CommandUnknownOpts, { program }: Pick<Io, 'program'>): Variables {
  const place = placeOf(command)
  if (program.join() !== EXECUTABLE || place === undefined || isGiven(command, place)) return {}
  const settings = readSettings(`Run this as root, or say ${place.long}.`)
  const variables: Variables = { [`${OPTIONS.database.envVar}`]: DEFAULT_DATABASE, ...settings.variables }
  for (const option of command.options) {
    const { envVar = '' } = option
    const text = variables[envVar]
    if (text === undefined || isGiven(command, option)) continue
    const line = settings.lines[envVar]
    const source = line === undefined ? 'the package' : `line ${line} of ${SETTINGS_FILE}`
    const value = withName(`${envVar} in ${source}`, () => parseSetting(text, option))
    command.setOptionValueWithSource(option.attributeName(), value, source)
  }
  if (place.long === '--database') refuseTwoDatabases(String(command.getOptionValue('database')))
  return settings.variables
}

/** The option with which a command names another place than that of the service. `serve` gets the settings from its unit. */
export const placeOf = (command: CommandUnknownOpts): Option | undefined =>
  command.name() === 'serve'
    ? undefined
    : command.options.find(({ long }) => long === '--database' || long === '--listen')

const isGiven = (command: CommandUnknownOpts, option: Option): boolean =>
  ['cli', 'env'].includes(command.getOptionValueSource(option.attributeName()) ?? '')

/** The variables of the settings file; none without the file, because the service starts without it, too. */
function readSettings(remedy: string): ReturnType<typeof parseEnvironmentFile> {
  let file: number | undefined
  try {
    // A pipe without a writer would keep the command waiting.
    file = openSync(SETTINGS_FILE, constants.O_RDONLY | constants.O_NONBLOCK)
    const found = fstatSync(file)
    if (!found.isFile()) throw misused(`${SETTINGS_FILE} is not a regular file: replace it by one.`)
    if (found.uid !== 0 || (found.mode & 0o022) !== 0)
      throw misused(`Others than root may change ${SETTINGS_FILE}: check it, then give it to root, with mode 640.`)
    return parseEnvironmentFile(readFileSync(file, 'utf8'), SETTINGS_FILE)
  } catch (error) {
    if (error instanceof AppError) throw error
    if (codeOf(error) === 'ENOENT') return { variables: {}, lines: {} }
    throw misused(`Cannot read ${SETTINGS_FILE}, the settings of the service: ${readFailure(error)}. ${remedy}`, error)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** The value of an option. A path or a socket begins in the directory of the service. */
function parseSetting(text: string, option: Option): unknown {
  const value = option.parseArg?.<unknown>(text.replace(/^unix:(?=[^/])/, `unix:${DIRECTORY}/`), undefined)
  const isPath = /<(?:path|where)>/.test(option.flags) && !isPostgresUrl(text)
  return isPath ? resolve(DIRECTORY, text) : value
}

/** The operator may mean a database in the working directory, which the command would take without a service. */
function refuseTwoDatabases(database: string): void {
  const real = (path: string) => orUndefined(() => realpathSync(path))
  const local = real(DEFAULT_DATABASE)
  if (local === undefined || local === real(database)) return
  throw misused(`There are two databases, ${database} and ${DEFAULT_DATABASE}: name one with --database.`)
}
