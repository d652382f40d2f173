import { openGroupWriter, type WriterOptions } from './group-commit.ts'
import type { OnWriterReport, Writer } from './writer.ts'

/** A writer in this thread: the caller of `perform` waits for the disk. Throws SQLite's error if it cannot open the database. */
export function openWriterHere(options: WriterOptions, onReport: OnWriterReport): Writer {
  const writer = openGroupWriter(options)
  let scheduled: ReturnType<typeof setImmediate> | undefined
  const checkpoint = () => {
    scheduled = undefined
    const report = writer.checkpointIfDue()
    if (report !== undefined) onReport(report)
  }
  return {
    async perform(group, nowMs) {
      const report = writer.perform(group, nowMs)
      // In a later turn of the event loop, so that no answer waits for it.
      scheduled ??= setImmediate(checkpoint)
      return report
    },
    checkOthers: writer.checkOthers,
    truncate: async () => writer.truncate(),
    async close() {
      clearImmediate(scheduled)
      return writer.close()
    },
    async discard() {
      clearImmediate(scheduled)
      writer.discard()
    },
  }
}
