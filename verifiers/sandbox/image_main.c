/* The image: what a holder and its zygote run. Nothing of the service is linked but what makes cages and runs Python. */
#include <sys/prctl.h>
#include <unistd.h>

#include "verifiers/sandbox/holder_private.h"
#include "verifiers/sandbox/image_private.h"

int main(void)
{
    struct sandbox_settings settings;

    if (read(IMAGE_SETTINGS_FD, &settings, sizeof settings) != sizeof settings || close(IMAGE_SETTINGS_FD) < 0)
        return 1;
    prctl(PR_SET_NAME, "sandbox-holder", 0, 0, 0);
    holder_serve(IMAGE_SOCKET_FD, &settings);
}
