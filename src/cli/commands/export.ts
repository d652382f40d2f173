// Tested in test/cli/transcripts/import-export.txt.
import type { Command } from '@commander-js/extra-typings'
import { escapeControlsInLines } from '../../controls.ts'
import type { OwnedPlant } from '../../domain/plant.ts'
import { misused } from '../../error.ts'
import { databaseOf } from '../../store/open.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { progressLines, runUntilSignal } from '../long-task.ts'
import { counted } from '../output.ts'
import { CSV_HEADER, renderPlantCsv, renderPlantLines } from '../plant-lines.ts'

/** `export`: prints plants as they are at one moment, a line of JSON or CSV each, as fast as the reader takes them. */
export const exportCommand = (program: Command, io: Io) =>
  defineCommand(program, 'export', {
    does: 'Prints all plants, or the plants of a user, one line of JSON each, or CSV. Works while a server runs.',
    examples: ['export', 'export --user me --csv --database /var/lib/plantstore/plants.db'],
    exits: { failed: 'The user is unknown.', closedPipe: 'The reader of stdout has gone.' },
    options: ['plantsOf', 'csv', 'databaseFile'],
  }).action(async ({ database, user, csv }) => {
    if (csv && user === undefined) throw misused('CSV has no column for users: --user says whose plants to print.')
    // CSV has no escapes for control characters, which would command a terminal.
    const renderCsv = (batch: readonly OwnedPlant[]) =>
      io.printsToTerminal ? escapeControlsInLines(renderPlantCsv(batch)) : renderPlantCsv(batch)
    const render = csv ? renderCsv : renderPlantLines
    let done = 0
    let plants = 0
    const exportPlants = async (signal: AbortSignal) => {
      const tools = await databaseOf(database).fileTools()
      await tools.exportPlants(user, async (batches, total) => {
        plants = total
        const show = progressLines(io)
        if (csv) await io.print(CSV_HEADER)
        for (const batch of batches) {
          await io.print(render(batch))
          signal.throwIfAborted()
          done += batch.length
          if (!io.printsToTerminal) show(done, plants, `${done} of ${plants} plants exported`)
        }
      })
    }
    const stoppedText = () =>
      `${done} of ${counted(plants, 'plant')} are printed. The output is not whole: run the same command again.`
    await runUntilSignal(io, exportPlants, stoppedText)
  })
