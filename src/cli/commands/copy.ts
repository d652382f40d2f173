import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../../config.ts'
import { copyStore, engineOf } from '../../store/open.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
import { type Progress, runUntilSignal, showProgress } from '../long-task.ts'
import { counted, toJson } from '../output.ts'

/** The command with its options. */
const define = (program: Command) =>
  program
    .command('copy')
    .description('Copies all users, tokens and plants into another store, from SQLite or PostgreSQL to either.')
    .addHelpText(
      'after',
      manual(
        'copy --from plantstore.db --to postgres://me@db.example.org/plants',
        'copy --from plantstore.db --to copy.db --snapshot',
        { failed: 'The copy differs from its source.' },
      ),
    )
    .addOption(OPTIONS.from)
    .addOption(OPTIONS.fromPasswordFile)
    .addOption(OPTIONS.to)
    .addOption(OPTIONS.toPasswordFile)
    .addOption(OPTIONS.snapshot)
    .addOption(OPTIONS.json)

type Options = OptionsOf<ReturnType<typeof define>>

/** `copy`: copies a store into another one and prints the location of the copy. */
export const copyCommand = (program: Command, io: Io): void => {
  define(program).action(async (options) => {
    let reached = 'no plant is copied'
    const onReached = (text: string) => {
      reached = text
    }
    const stoppedText = () =>
      `${reached}. No server takes the unfinished copy: run the same command again, which starts it over.`
    await runUntilSignal(io, (signal) => copy(options, signal, onReached, io), stoppedText)
  })
}

async function copy(options: Options, signal: AbortSignal, onReached: (text: string) => void, io: Io): Promise<void> {
  const { fromPasswordFile, toPasswordFile, snapshot: isSnapshot = false, json } = options
  const [from, to] = [engineOf(options.from).location, engineOf(options.to).location]
  if (isSnapshot) {
    await io.tell(`The copy will not contain later writes to ${from}.\n`)
  }
  // Each stage has a line or a bar, one at a time.
  let shown: { readonly stage: string; readonly progress: Progress } | undefined
  try {
    const { counts, digest } = await copyStore(
      { database: options.from, passwordFile: fromPasswordFile },
      { database: options.to, passwordFile: toPasswordFile },
      {
        isSnapshot,
        signal,
        onEvent: ({ message }) => void io.tell(`Warning: ${message}.\n`),
        onProgress(stage, done, total) {
          onReached(`${done} of ${counted(total, 'plant')} are ${stage}`)
          if (shown?.stage !== stage) {
            shown?.progress[Symbol.dispose]()
            shown = { stage, progress: showProgress(io, `plants ${stage}`) }
          }
          shown.progress.update(done, total)
        },
      },
    )
    const { users, tokens, plants } = counts
    await io.tell(
      `Copied ${counted(users, 'user')}, ${counted(tokens, 'token')} and ${counted(plants, 'plant')} from ${from} to ${to}: SHA-256 ${digest}.\n`,
    )
    const copied = { from, to, users, tokens, plants, sha256: digest }
    await io.print(json ? toJson(copied) : `${to}\n`)
  } finally {
    shown?.progress[Symbol.dispose]()
  }
}
