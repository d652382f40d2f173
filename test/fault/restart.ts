export { QUIET } from './test-database.ts'
