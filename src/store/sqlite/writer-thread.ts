// Tested in test/store/sqlite/contract.test.ts.
import { runProgram } from '../../engine/sqlite/writer-thread.ts'
import { PLANT_STORE } from './writing/writes.ts'

// The entry point of the thread that writes to SQLite.
runProgram(PLANT_STORE)
