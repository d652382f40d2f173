import type { Command } from '@commander-js/extra-typings'
import { databaseOf } from '../../store/open.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { runUntilSignal, showProgress } from '../long-task.ts'
import { counted } from '../output.ts'
import { renderPlantLines } from '../plant-lines.ts'

/** `export`: prints plants as they are at one moment, a line of JSON each, as fast as the reader takes them. */
export const exportCommand = (program: Command, io: Io) =>
  defineCommand(program, 'export', {
    does: 'Prints all plants, or the plants of a user, one line of JSON each. Works while a server runs.',
    examples: ['export', 'export --user me --database /var/lib/plantstore/plants.db'],
    exits: { failed: 'The user is unknown.', closedPipe: 'The reader of stdout has gone.' },
    options: ['plantsOf', 'databaseFile'],
  }).action(async ({ database, user }) => {
    let done = 0
    let plants = 0
    const exportPlants = async (signal: AbortSignal) => {
      const tools = await databaseOf(database).fileTools()
      await tools.exportPlants(user, async (batches, total) => {
        plants = total
        using progress = showProgress(io)
        for (const batch of batches) {
          await io.print(renderPlantLines(batch))
          signal.throwIfAborted()
          done += batch.length
          if (!io.printsToTerminal) progress.update(done, plants, `${done} of ${plants} plants exported`)
        }
      })
    }
    const stoppedText = () =>
      `${done} of ${counted(plants, 'plant')} are printed. The output is not whole: run the same command again.`
    await runUntilSignal(io, exportPlants, stoppedText)
  })
