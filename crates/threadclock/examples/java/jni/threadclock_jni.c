/* cc -O2 -shared -fPIC -I$JAVA_HOME/include -I$JAVA_HOME/include/linux threadclock_jni.c \
 *     $(pkg-config --cflags --libs threadclock) -o libthreadclockjni.so */
#include <jni.h>
#include <threadclock.h>

JNIEXPORT jlong JNICALL Java_ThreadClock_nowNs(JNIEnv *env, jclass class)
{
    (void)env, (void)class;
    return (jlong)threadclock_now_ns();
}

JNIEXPORT jlong JNICALL Java_ThreadClock_errorBoundNs(JNIEnv *env, jclass class)
{
    (void)env, (void)class;
    return (jlong)threadclock_error_bound_ns();
}

JNIEXPORT jstring JNICALL Java_ThreadClock_tier(JNIEnv *env, jclass class)
{
    (void)class;
    return (*env)->NewStringUTF(env, threadclock_tier());
}
