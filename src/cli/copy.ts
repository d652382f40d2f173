import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { copyStore, locate } from '../store/open.ts'
import { exitCodeOf, type Io } from './io.ts'
import { type Progress, showProgress } from './progress.ts'
import { stopOnSignal } from './stopping.ts'

interface CopyOptions {
  readonly from: string
  readonly fromPasswordFile?: string
  readonly to: string
  readonly toPasswordFile?: string
  readonly snapshot?: boolean
}

/** `copy`: copies a store into another one. Prints where it is. */
export const copyCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  program
    .command('copy')
    .description('copy all users, tokens and plants into another store, from SQLite or PostgreSQL to either')
    .addOption(OPTIONS.from().makeOptionMandatory())
    .addOption(OPTIONS.fromPasswordFile())
    .addOption(OPTIONS.to().makeOptionMandatory())
    .addOption(OPTIONS.toPasswordFile())
    .addOption(OPTIONS.snapshot())
    .action(async (options: CopyOptions) => {
      const stopping = stopOnSignal(io)
      try {
        await copy(options, stopping.signal, io)
      } catch (error) {
        const signal = stopping.stoppedBy()
        if (signal === undefined || error !== stopping.signal.reason) throw error
        exit(exitCodeOf(signal))
        await io.tell(`Stopped by ${signal}: no server takes the copy, and plantstore copy starts it over.\n`)
      }
    })
}

async function copy(options: CopyOptions, signal: AbortSignal, io: Io): Promise<void> {
  const { from, fromPasswordFile, to, toPasswordFile, snapshot: isSnapshot = false } = options
  if (isSnapshot) {
    await io.tell(`What is written to ${locate(from)} from now on is not in the copy.\n`)
  }
  // A line or a bar for each stage, of which one is shown at a time.
  let shown: { readonly stage: string; readonly progress: Progress } | undefined
  try {
    const { counts, digest } = await copyStore(
      { database: from, passwordFile: fromPasswordFile },
      { database: to, passwordFile: toPasswordFile },
      {
        isSnapshot,
        signal,
        onNotice: ({ message }) => void io.tell(`Warning: ${message}.\n`),
        onProgress(stage, done, total) {
          if (shown?.stage !== stage) {
            shown?.progress[Symbol.dispose]()
            shown = { stage, progress: showProgress(io, `plants ${stage}`) }
          }
          shown.progress.update(done, total)
        },
      },
    )
    await io.tell(
      `Copied users ${counts.users}, tokens ${counts.tokens}, plants ${counts.plants}: SHA-256 ${digest}.\n`,
    )
    await io.print(`${locate(to)}\n`)
  } finally {
    shown?.progress[Symbol.dispose]()
  }
}
