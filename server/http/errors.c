#include "server/http/errors.h"

const struct error_row error_rows[ERR_COUNT] = {
#define ERROR_ROW(name, status, code) [ERR_##name] = {status, code},
    ERROR_TABLE(ERROR_ROW)
#undef ERROR_ROW
};
