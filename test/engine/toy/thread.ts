import { runProgram } from '../../../src/engine/sqlite/writer-thread.ts'
import { COUNTERS } from './counters.ts'

runProgram(COUNTERS)
