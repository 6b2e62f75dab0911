#include <convgrad/convgrad.h>
#include <string.h>

int main(void) { return strcmp(convgrad_version(), CONVGRAD_VERSION_STRING) == 0 ? 0 : 1; }
