// Tested in test/cli/transcripts/status-check.txt.
import type { Command } from '@commander-js/extra-typings'
import { databaseOf } from '../../store/open.ts'
import { defineCommand, openOptionsOf, STORE_OPTIONS, warnOn } from '../command.ts'
import { Ended, EXIT, type Io } from '../io.ts'
import { toJson } from '../output.ts'

/** `check`: reads the whole database and prints its problems. */
export const checkCommand = (program: Command, io: Io) =>
  defineCommand(program, 'check', {
    does: 'Reads the whole database and reports damage.',
    examples: ['check', 'check --database postgres://me@db.example.org/plants --json'],
    exits: {
      done: 'The database is whole.',
      storeUnusable: 'The database is damaged or missing, or cannot be reached.',
    },
    options: ['databaseOfServer', ...STORE_OPTIONS, 'json'],
  }).action(async ({ json, ...options }) => {
    const openOptions = openOptionsOf(options)
    const named = databaseOf(options.database, openOptions)
    const { location: database, repairAdvice } = named
    const onEvent = ({ message }: { readonly message: string }) => warnOn(io)(`${message}.`)
    const problems = await named.check({ ...openOptions, onEvent, onOtherName: warnOn(io) })
    const isWhole = problems.length === 0
    if (json) await io.print(toJson({ database, isWhole, problems }))
    if (isWhole) return io.report(`The database ${database} is whole.`)
    // The indentation keeps names in the database from looking like lines of ours.
    const lines = problems.map((problem) => `  ${problem}`)
    await io.report([`The database ${database} is damaged:`, ...lines, repairAdvice])
    throw new Ended(EXIT.storeUnusable)
  })
