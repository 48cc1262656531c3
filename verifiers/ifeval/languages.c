/* THE table of languages. Words are in small letters; a word may be one of several languages. */
#include "verifiers/ifeval/language_private.h"

#include "server/base/cleanup.h"

const struct language language_rows[] = {
    {"en", SCRIPT_LATIN,
     "the of and to in is was that it he for as with his on be at by had not are but from or have an they which one "
     "you were "
     "her she there would their we him been has when who will more no if out so said what up its about into than them "
     "can "
     "only other this these those do does did your my our how why where because while after before",
     NULL},
    {"es", SCRIPT_LATIN,
     "el la de que y en un una los las del se por con para es al lo como más pero sus le ya o este sí porque esta "
     "entre "
     "cuando muy sin sobre también me hasta hay donde quien desde todo nos durante todos uno les ni contra otros ese "
     "eso ante "
     "ellos esto antes algunos qué unos yo otro otras él tanto esa estos mucho cual está son fue ser tiene su no del "
     "puede pueden cada así aunque mientras según dos bien era había han ella ellas aquí",
     "ñ¿¡"},
    {"pt", SCRIPT_LATIN,
     "o a de que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou "
     "ser "
     "quando muito há nos já está eu também só pelo pela até isso ela entre era depois sem mesmo aos ter seus quem nas "
     "me "
     "esse eles estão você tinha foram essa num nem suas meu às minha têm numa pelos havia são",
     "ãõ"},
    {"fr", SCRIPT_LATIN,
     "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec son aux d "
     "l ou "
     "mais comme cette ses leur nous vous ils elle on tout même aussi y ces sans été être fait deux entre peut si où "
     "je sa "
     "qu n s après dont très bien encore leurs était avait faire cela",
     "œ"},
    {"de", SCRIPT_LATIN,
     "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat "
     "dass sie "
     "nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch "
     "man sein "
     "wurde sei ich wir kann ihr wenn unter diese dieser wie schon",
     "ß"},
    {"it", SCRIPT_LATIN,
     "di e il la che in un a per è una del con non sono da le si della i dei nel al come più ma alla lo gli anche su o "
     "nella "
     "delle ha questo dalla se dal suo essere ai loro tra quando degli sua ed stato era fra questa sulla cui molto "
     "tutti ci "
     "dell all l  perché nei alle",
     NULL},
    {"nl", SCRIPT_LATIN,
     "de van het een en in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit door over worden "
     "werd naar "
     "heeft hij ze wordt tot je was of die deze ik we kan veel meer geen hun hebben wel moet zo",
     NULL},
    {"af", SCRIPT_LATIN, "", NULL},
    {"sv", SCRIPT_LATIN,
     "och i att det som en på är av för med till den har de inte om ett han men var jag från vi så kan när år under "
     "också ska "
     "eller efter där nu sin hade skulle mot alla hon vid denna detta blir mycket",
     NULL},
    {"da", SCRIPT_LATIN,
     "og i at det er en til på som af for med de den der ikke har et han var fra om jeg vi men kan efter når så også "
     "skal "
     "eller hvor blev mod alle hun ved denne dette bliver meget over ud nogle",
     NULL},
    {"no", SCRIPT_LATIN,
     "og i det er en til på som av for med at de den ikke har et han var fra om jeg vi men kan etter når så også skal "
     "eller "
     "hvor ble mot alle hun ved denne dette blir mye over ut noen",
     NULL},
    {"fi", SCRIPT_LATIN,
     "ja on ei se että oli ovat hän mutta tai kun niin kuin myös joka sen ole jos mukaan vain jo olla nyt siitä mitä "
     "minä "
     "sinä te he me tämä tämän sitä kanssa sekä joten jotka vielä voi hyvin kaikki ennen jälkeen olen oma vuoden ollut",
     NULL},
    {"et", SCRIPT_LATIN, "", NULL},
    {"vi", SCRIPT_LATIN,
     "và của là có một trong cho được các không những người với này đã để khi từ về cũng như đến ra năm tại vào theo "
     "trên "
     "nhưng làm lại sẽ nhiều phải hay đó rất thì bị nếu đang chúng tôi bạn ở còn",
     "ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"},
    {"sw", SCRIPT_LATIN,
     "na ya wa kwa ni katika za la cha kuwa hii kama watu yake wake huo huyo hiyo yao lakini pia au si vya sana hata "
     "kila "
     "baada kutoka wakati moja hivyo ambayo ambao yangu wao sisi mimi wewe yeye kwenye kuna ili zaidi nchi kabla mtu "
     "siku",
     NULL},
    {"tr", SCRIPT_LATIN,
     "ve bir bu da de için ile olarak olan çok daha ne gibi en kadar o ya var sonra ama ki her mi değil ise olduğu ben "
     "sen biz "
     "onun kendi zaman diye şey bunu göre oldu önce yok bütün nasıl",
     "ğış"},
    {"id", SCRIPT_LATIN,
     "yang dan di dengan untuk dari ini dalam itu tidak pada akan adalah ke juga ada oleh sebagai mereka saya kami "
     "kita telah "
     "dapat lebih atau karena bisa sudah tersebut anda seperti banyak satu orang menjadi hanya",
     NULL},
    {"tl", SCRIPT_LATIN, "", NULL},
    {"ro", SCRIPT_LATIN,
     "și de a în la cu pe din o un că nu este pentru care se mai sunt au fost ca ce sau prin dar după fi lui ei sa el "
     "ea fără "
     "când până între foarte acest această acum doar cum dacă",
     "ășțţ"},
    {"pl", SCRIPT_LATIN,
     "i w na z do nie się że to jest o jak ale po co za tak od jego przez dla są może tym który jej ich było już być "
     "był tylko "
     "która które także lub czy oraz bardzo gdy ze pod przy jako mnie tego",
     "ąęłśźżń"},
    {"cs", SCRIPT_LATIN,
     "a v na se je že s z do o to i k ve pro za by jako ale jsou po jeho které který však také být bylo tak od podle "
     "která už "
     "byl nebo ze při co jak aby mezi jen pak velmi když má",
     "ěřů"},
    {"sk", SCRIPT_LATIN, "", NULL},
    {"sl", SCRIPT_LATIN, "", NULL},
    {"hr", SCRIPT_LATIN, "", NULL},
    {"lt", SCRIPT_LATIN, "", NULL},
    {"lv", SCRIPT_LATIN, "", NULL},
    {"sq", SCRIPT_LATIN, "", NULL},
    {"so", SCRIPT_LATIN, "", NULL},
    {"cy", SCRIPT_LATIN, "", NULL},
    {"hu", SCRIPT_LATIN,
     "a az és hogy nem is egy ez de van meg volt csak már ha mint még vagy azt kell el sem lehet nagyon majd után ki "
     "első mert "
     "amely azonban minden pedig két itt így úgy én ő mi",
     "őű"},
    {"ca", SCRIPT_LATIN,
     "de la i a el que en les els un per una del amb és no es dels al com va ha més o però són aquest aquesta ser per "
     "seva seu "
     "hi molt també entre quan sobre pel pels ens fins tot pot poden qual quals fer fet cada així tots totes alguns "
     "altra altres dins cap si ha són seva seves seus",
     "ŀ"},
    {"ru", SCRIPT_CYRILLIC,
     "и в не на я что он с как это по но они мы из у к за от то же для так его все или бы был её а о если уже вы она "
     "было "
     "только также когда при до может их нет чтобы есть быть этот этой которые который очень после часто",
     "ыэё"},
    {"uk", SCRIPT_CYRILLIC,
     "і в не на що з та у як до це за він від але я його по для є або ми вони так про їх бути також був яка який ви "
     "при її "
     "вона було те якщо коли може дуже після ж під зі все які",
     "іїєґ"},
    {"bg", SCRIPT_CYRILLIC,
     "и на да се в за от не е с по че са си ще като до той това но или при ли го му те ги съм беше има след аз който "
     "може "
     "които тя със много още към което само над през към ме така",
     "ъ"},
    {"mk", SCRIPT_CYRILLIC, "", "ѓќѕ"},
    {"ar", SCRIPT_ARABIC,
     "في من على أن إلى هذا التي الذي هذه مع لا ما كان عن هو هي لم أو بعد قد كل بين ذلك كما كانت غير حتى أي عند إن ثم "
     "لكن يمكن "
     "لها له تم وقد منذ حيث وهو أيضا خلال فيه",
     "ةىأإ"},
    {"fa", SCRIPT_ARABIC,
     "و در به از که این را با است برای آن یک تا بر های می خود هم شد بود شده یا اما نیز کرد ما هر من باید دارد آنها کند "
     "شود اند "
     "اگر ها چه بسیار همه نمی ای",
     "پچژگ"},
    {"ur", SCRIPT_ARABIC,
     "کے کی ہے میں اور کا سے کو نے پر ہیں اس یہ ہو کہ تھا بھی نہیں ایک جو تو کر ان گیا تھے وہ ہم کیا ہوتا لیے ساتھ تھی "
     "ہوئے آپ "
     "رہے گی کوئی بہت",
     "ٹڈڑےںہھ"},
    {"hi", SCRIPT_DEVANAGARI,
     "के का में की है और से को पर यह कि एक नहीं हैं ने भी तो था लिए इस कर जो हो वह या थे थी गया हम कुछ अपने जब ही साथ बहुत मैं ये "
     "तक क्या किया होता आप उनके",
     NULL},
    {"mr", SCRIPT_DEVANAGARI,
     "आहे आणि या व हे तो ते ही होते आहेत त्या हा मध्ये एक होता नाही पण असे काही की त्याच्या करून म्हणून होती साठी केले जे मी आपण "
     "त्यांच्या अशा जर किंवा खूप तर झाले च्या",
     "ळ"},
    {"ne", SCRIPT_DEVANAGARI,
     "छ र को मा लाई हो पनि यो का ले गर्न भएको छन् एक थियो गरेको यस हुन्छ तथा गर्ने त्यो हुन् भने म उनी तर लागि बाट गरी भयो नेपाल "
     "छैन धेरै हाम्रो के अनि वा रहेको",
     NULL},
    {"el", SCRIPT_GREEK, NULL, NULL},
    {"he", SCRIPT_HEBREW, NULL, NULL},
    {"bn", SCRIPT_BENGALI, NULL, NULL},
    {"pa", SCRIPT_GURMUKHI, NULL, NULL},
    {"gu", SCRIPT_GUJARATI, NULL, NULL},
    {"ta", SCRIPT_TAMIL, NULL, NULL},
    {"te", SCRIPT_TELUGU, NULL, NULL},
    {"kn", SCRIPT_KANNADA, NULL, NULL},
    {"ml", SCRIPT_MALAYALAM, NULL, NULL},
    {"th", SCRIPT_THAI, NULL, NULL},
    {"ko", SCRIPT_HANGUL, NULL, NULL},
    {"ja", SCRIPT_KANA, NULL, NULL},
    {"zh", SCRIPT_HAN, NULL, NULL},
    {"zh-cn", SCRIPT_HAN, "", NULL},
    {"zh-tw", SCRIPT_HAN, "", NULL},
};

const size_t language_row_count = ARRAY_LENGTH(language_rows);
_Static_assert(ARRAY_LENGTH(language_rows) <= LANGUAGES_MAX, "a word's languages are bits of 64");
