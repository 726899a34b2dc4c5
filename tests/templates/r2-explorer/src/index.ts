import { Explorer } from './explorer';

export default Explorer({ readonly: false, cors: true });
