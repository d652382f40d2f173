import type { Command } from '@commander-js/extra-typings'
import { copyStore, databaseOf } from '../../store/open.ts'
import { defineCommand, tellRaise, warnOn } from '../command.ts'
import type { Io } from '../io.ts'
import { progressLines, runUntilSignal } from '../long-task.ts'
import { counted, printLine, toJson } from '../output.ts'

/** `copy`: copies a store into another one and prints the location of the copy. */
export const copyCommand = (program: Command, io: Io) =>
  defineCommand(program, 'copy', {
    does: 'Copies all users, tokens and plants into another store, from SQLite or PostgreSQL to either.',
    examples: [
      'copy --from plantstore.db --to postgres://me@db.example.org/plants',
      'copy --from plantstore.db --to copy.db --snapshot',
    ],
    exits: { storeUnusable: 'A store is missing, in use or damaged, or --to is not empty, or the copy differs.' },
    options: ['from', 'fromPasswordFile', 'to', 'toPasswordFile', 'durability', 'snapshot', 'json'],
  }).action(async ({ json, snapshot: isSnapshot = false, ...options }) => {
    const source = databaseOf(options.from, { passwordFile: options.fromPasswordFile })
    const target = databaseOf(options.to, { passwordFile: options.toPasswordFile })
    const [from, to] = [source.location, target.location]
    if (isSnapshot) await io.report(`The copy will not contain later writes to ${from}.`)
    let stopped = 'nothing was copied. Run the same command again.'
    const onPublish = () => {
      stopped = `whether ${to} has the copy is unknown. Run the same command again, which refuses a store with rows.`
    }
    const onEvent = ({ message }: { readonly message: string }) => warnOn(io)(`${message}.`)
    const told = { onEvent, onRaised: tellRaise({ warn: warnOn(io) }), onPublish }
    const show = progressLines(io)
    const onProgress = (stage: string, done: number, total: number) =>
      show(done, total, `${done} of ${total} plants ${stage}`)
    const copyAll = (signal: AbortSignal) =>
      copyStore(source, target, { ...options, ...told, isSnapshot, signal, onProgress })
    const { counts, digest } = await runUntilSignal(io, copyAll, () => stopped)
    const { users, tokens, plants } = counts
    await io.report(
      `Copied ${counted(users, 'user')}, ${counted(tokens, 'token')} and ${counted(plants, 'plant')} from ${from} to ${to}: SHA-256 ${digest}.`,
    )
    if (!isSnapshot) await io.report(`End the servers that use ${from}: the copy has none of their later writes.`)
    await (json ? io.print(toJson({ from, to, users, tokens, plants, sha256: digest })) : printLine(io, to))
  })
